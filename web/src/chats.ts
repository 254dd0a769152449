/** Pure: the list of chats, kept as roots with their children. */

import type { Chat } from "./wire";

/**
 * Puts a created or changed chat in its place. Pinned ones first, then newest activity; children oldest first.
 * An answer that took longer than a change does not undo it.
 */
export function upsertChat(roots: readonly Chat[], chat: Chat): Chat[] {
  if (chat.parent_chat_id) return upsertChild(roots, chat);
  const known = roots.find((root) => root.id === chat.id);
  if (known && compare(chat.updated_at, known.updated_at) < 0) return [...roots];
  const children = chat.children.length > 0 ? chat.children : (known?.children ?? []);
  const others = roots.filter((root) => root.id !== chat.id);
  return [...others, { ...chat, children }].sort(byPlace);
}

function upsertChild(roots: readonly Chat[], child: Chat): Chat[] {
  return roots.map((root) => {
    if (root.id !== child.root_chat_id) return root;
    const others = root.children.filter((known) => known.id !== child.id);
    const children = [...others, child].sort((a, b) => compare(a.created_at, b.created_at));
    return { ...root, children };
  });
}

const byPlace = (a: Chat, b: Chat) =>
  (rank(a) === rank(b) ? 0 : rank(a) - rank(b)) || compare(b.updated_at, a.updated_at);
const rank = (chat: Chat) => chat.pin_order || Infinity;

// Times are compared as instants: one server may write "Z" and another "+00:00".
const compare = (a: string, b: string) => Date.parse(a) - Date.parse(b);

export function findChat(roots: readonly Chat[], id: string): Chat | null {
  for (const root of roots) {
    if (root.id === id) return root;
    const child = root.children.find((known) => known.id === id);
    if (child) return child;
  }
  return null;
}
