/** A picture's thumbnail; a click opens it in the dialog. */

import { fileUrl } from "../api";
import { enlarged } from "./ImageDialog";

export function Screenshot({ fileId, label }: { fileId: string; label: string }) {
  const source = fileUrl(fileId);
  return (
    <button
      type="button"
      class="thumbnail"
      data-testid="screenshot"
      aria-label={`Enlarge: ${label}`}
      onClick={() => (enlarged.value = { source, label })}
    >
      <img src={source} alt={label} loading="lazy" decoding="async" />
    </button>
  );
}
