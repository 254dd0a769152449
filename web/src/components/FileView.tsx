/** A file that goes with a message or a result: a picture, or a download. */

import { fileUrl } from "../api";
import type { FilePart } from "../wire";
import { Screenshot } from "./Screenshot";

export function FileView({ file }: { file: FilePart }) {
  const name = file.name ?? "file";
  if (!file.file_id) return <span class="file">{name}</span>;
  if (file.media_type.startsWith("image/"))
    return <Screenshot fileId={file.file_id} label={name} />;
  return (
    <a class="file" href={fileUrl(file.file_id)} download={name}>
      {name}
    </a>
  );
}
