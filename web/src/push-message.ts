/** Pure: what a push says. A browser must show something for each, so nothing is ever refused. */

export interface ShownPush {
  type: "show";
  title: string;
  body: string;
  path: string;
  tag: string;
  /** Milliseconds since 1970, when it was told; 0: not known. */
  at: number;
}

/** Takes back what is shown under a tag and was told before. */
export interface ClearPush {
  type: "clear";
  tag: string;
  at: number;
}

export type PushMessage = ShownPush | ClearPush;

/** What is kept with a notification that is shown. */
export interface NoteData {
  path: string;
  at: number;
}

export function readPush(text: string): PushMessage {
  let fields: Record<string, unknown> = {};
  try {
    const parsed: unknown = JSON.parse(text);
    if (parsed !== null && typeof parsed === "object") fields = parsed as Record<string, unknown>;
  } catch {
    // Shown as something that happened, without words of its own.
  }
  const field = (name: string) => (typeof fields[name] === "string" ? fields[name] : "");
  const tag = field("tag");
  const at = typeof fields.at === "number" ? fields.at : 0;
  if (field("type") === "clear" && tag) return { type: "clear", tag, at };
  // Within our own page: a path could otherwise name another site.
  const path = field("path");
  return {
    type: "show",
    title: field("title") || "agentd",
    body: field("body") || "Something happened in a chat.",
    path: path.startsWith("#/") ? path : "",
    tag,
    at,
  };
}

/** What a notification's data says, whatever an older worker of ours put there. */
export function readNoteData(data: unknown): NoteData {
  const { path, at } = (data ?? {}) as Partial<NoteData>;
  return {
    path: typeof path === "string" ? path : "",
    at: typeof at === "number" ? at : 0,
  };
}

/** Whether a clear takes back what is shown with *data*: not what was told after it. */
export function isCleared(clear: ClearPush, data: unknown): boolean {
  return readNoteData(data).at <= clear.at;
}
