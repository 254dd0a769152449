/** Live state of the context dialog: one chat's pin, and what a refresh would change. */

import { batch, signal } from "@preact/signals";
import { ApiError, api } from "./api";
import { upsertChat } from "./chats";
import { chats } from "./state";
import type { Chat, ContextDiff, ContextResource } from "./wire";

/** The chat whose context is shown; null while the dialog is closed. */
export const shownChatId = signal<string | null>(null);
export const resources = signal<readonly ContextResource[] | null>(null);
export const difference = signal<ContextDiff | null>(null);
export const refreshing = signal(false);
export const contextProblem = signal<string | null>(null);

export function openContext(chatId: string): void {
  batch(() => {
    shownChatId.value = chatId;
    resources.value = null;
    difference.value = null;
    contextProblem.value = null;
  });
  void loadContext(chatId);
}

export function closeContext(): void {
  shownChatId.value = null;
}

/** Reads the pin and, where it is dirty, the difference; also after a push that came meanwhile. */
export async function loadContext(chatId: string): Promise<void> {
  await attempt(chatId, async () => {
    const chat = await api.chat(chatId);
    const changes = chat.context?.dirty ? await api.contextDiff(chatId) : null;
    show(chat, changes);
  });
}

export async function refreshContext(chatId: string): Promise<void> {
  refreshing.value = true;
  await attempt(chatId, async () => show(await api.refreshContext(chatId), null));
  refreshing.value = false;
}

function show(chat: Chat, changes: ContextDiff | null): void {
  chats.value = upsertChat(chats.value, chat);
  if (shownChatId.value !== chat.id) return;
  batch(() => {
    resources.value = chat.context?.resources ?? [];
    difference.value = changes;
    contextProblem.value = null;
  });
}

async function attempt(chatId: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (shownChatId.value === chatId) contextProblem.value = error.message;
  }
}
