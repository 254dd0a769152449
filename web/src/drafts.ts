/** Unsent text of each chat, kept for this tab over reloads and changes of chat. */

const PREFIX = "draft:";

export function loadDraft(key: string): string {
  try {
    return sessionStorage.getItem(PREFIX + key) ?? "";
  } catch {
    return "";
  }
}

export function saveDraft(key: string, text: string): void {
  try {
    if (text === "") sessionStorage.removeItem(PREFIX + key);
    else sessionStorage.setItem(PREFIX + key, text);
  } catch {
    // Storage that is full or forbidden: the text is still in the field.
  }
}
