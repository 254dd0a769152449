/** Pure: what a tool answered, made readable. */

import { isObject } from "./sentences";
import type { FilePart, ToolCallPart, ToolResultPart } from "./wire";

export interface ReadableResult {
  text: string;
  imageFileId: string | null;
}

export function readResult(part: ToolResultPart): ReadableResult {
  const { result } = part;
  if (typeof result === "string") return { text: result, imageFileId: null };
  if (!isObject(result)) return { text: result == null ? "" : pretty(result), imageFileId: null };
  if (part.is_media) {
    const isImage = String(result.mime_type ?? "image/").startsWith("image/");
    const fileId = isImage && typeof result.file_id === "string" ? result.file_id : null;
    return { text: String(result.text ?? ""), imageFileId: fileId };
  }
  if (typeof result.error === "string" && part.is_error) {
    return { text: result.error, imageFileId: null };
  }
  if (typeof result.output === "string" && Object.keys(result).length === 1) {
    return { text: result.output, imageFileId: null };
  }
  if (typeof result.summary === "string") return { text: result.summary, imageFileId: null };
  return { text: pretty(result), imageFileId: null };
}

/** The film of a sub-agent's work, and a picture of its end, that a wait's result names. */
export function filmOf(result: ToolResultPart | null): {
  film: string | null;
  thumbnail: string | null;
} {
  const value = isObject(result?.result) ? result.result : {};
  const id = (name: string) => (typeof value[name] === "string" ? value[name] : null);
  return { film: id("recording_file_id"), thumbnail: id("thumbnail_file_id") };
}

/** The file that a result gives the person. */
export function attachmentOf(part: ToolResultPart | null): FilePart | null {
  if (part === null || part.is_error || part.tool_name !== "attach_file") return null;
  const { result } = part;
  if (!isObject(result) || typeof result.file_id !== "string") return null;
  const { file_id, name, media_type } = result;
  return { type: "file", file_id, name: String(name), media_type: String(media_type) };
}

export const pretty = (value: unknown) => JSON.stringify(value, null, 2);

/** The sub-agent's chat that a call created or refers to. */
export function childChatId(call: ToolCallPart, result: ToolResultPart | null): string | null {
  if (!/^spawn_|_agent$/.test(call.tool_name)) return null;
  for (const source of [result?.result, outputJson(result), call.args]) {
    if (isObject(source) && typeof source.chat_id === "string") return source.chat_id;
  }
  return null;
}

function outputJson(result: ToolResultPart | null): unknown {
  if (!isObject(result?.result) || typeof result.result.output !== "string") return null;
  try {
    return JSON.parse(result.result.output);
  } catch {
    return null;
  }
}
