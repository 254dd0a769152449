/** What the whole page knows, as signals, and the few moves that change it. */

import { batch, computed, signal } from "@preact/signals";
import { ApiError, api, socketUrl } from "./api";
import type { ChatChange } from "./api";
import { findChat, upsertChat } from "./chats";
import { Conversation } from "./conversation";
import { chosenEffort, currentEffort, effortChoice } from "./effort";
import { closeNotifications } from "./notify";
import { arrived, outgoing } from "./outgoing";
import { EventSocket } from "./socket";
import type { BusyBehavior, Chat, Me, WatchEvent } from "./wire";

export type Pane = "chats" | "chat" | "desktop";

export const me = signal<Me | null>(null);
/** The server has not answered yet at all. */
export const offline = signal(false);
/** What went wrong with something that has no place of its own to say so. */
export const notice = signal<string | null>(null);
export const chats = signal<readonly Chat[]>([]);
export const chatsLoaded = signal(false);
export const listConnected = signal(true);
export const openChatId = signal<string | null>(null);
export const openChatMissing = signal(false);
export const conversation = signal<Conversation | null>(null);
/** Who has control of the open chat's desktop; null while it is not shown. */
export const control = signal<{
  holder: "me" | "other" | "agent";
  name: string | null;
} | null>(null);
/** Whether the list shows what was put away. */
export const showsArchived = signal(false);
/** Text of a queued message that goes back to the field it was written in. */
export const takenBack = signal<{ chatId: string; text: string } | null>(null);
/** The visible pane on a narrow screen. */
export const pane = signal<Pane>("chat");
/** Whether the chat that is about to begin makes a plan first. */
export const planFirst = signal(false);
export const chosenModelId = signal<string | null>(null);
export const now = signal(Date.now());

const OFFLINE_RETRY_MS = 3_000;
/** The server is heard at least every 25 s. */
const LIST_SILENCE_MS = 60_000;
const DESKTOP_KEY = "desktop-shown";
export const desktopShown = signal(localStorage.getItem(DESKTOP_KEY) !== "no");

export const openChat = computed(() =>
  openChatId.value === null ? null : findChat(chats.value, openChatId.value),
);

/** The model of the open chat, or the one chosen for the next. */
export const currentModel = computed(() => {
  const id = openChat.value?.last_model_config_id ?? chosenModelId.value;
  return me.value?.models.find((model) => model.id === id) ?? null;
});

export function setDesktopShown(shown: boolean): void {
  desktopShown.value = shown;
  localStorage.setItem(DESKTOP_KEY, shown ? "yes" : "no");
}

/** Loads who we are and follows the list of chats. Tries again while there is no server. */
export async function start(): Promise<void> {
  if (!(await loadMe())) {
    if (offline.value) window.setTimeout(() => void start(), OFFLINE_RETRY_MS);
    return;
  }
  await loadChats();
  followRoute();
  window.addEventListener("hashchange", followRoute);
  window.setInterval(() => (now.value = Date.now()), 30_000);
  watchChats();
}

async function loadMe(): Promise<boolean> {
  try {
    const loaded = await api.me();
    batch(() => {
      me.value = loaded;
      offline.value = false;
      chosenModelId.value ??= loaded.default_model_config_id ?? loaded.models[0]?.id ?? null;
    });
    return true;
  } catch (error) {
    offline.value = !(error instanceof ApiError && error.status === 401);
    return false;
  }
}

async function loadChats(): Promise<void> {
  try {
    const loaded = await api.chats();
    chats.value = loaded.reduce<Chat[]>(upsertChat, []);
    chatsLoaded.value = true;
  } catch {
    listConnected.value = false;
  }
}

function watchChats(): void {
  let first = true;
  new EventSocket<WatchEvent>(socketUrl("chats/watch"), LIST_SILENCE_MS, {
    onOpen: () => {
      listConnected.value = true;
      // Changes made while nobody listened are only in the list.
      if (!first || !chatsLoaded.value) void loadChats();
      first = false;
    },
    onEvents: (events) => {
      chats.value = events
        .filter((event) => event.type === "chat")
        .reduce<readonly Chat[]>((list, event) => upsertChat(list, event.chat), chats.value);
    },
    onLost: (everOpened) => {
      listConnected.value = false;
      // A refused upgrade hides its status; asking again tells an ended login from a lost server.
      if (!everOpened) void api.me().catch(() => undefined);
    },
  });
}

export const chatHref = (id: string) => `#/chats/${id}`;

function followRoute(): void {
  const id = /^#\/chats\/([\w-]+)$/.exec(location.hash)?.[1] ?? null;
  if (id === openChatId.value) return;
  conversation.value?.close();
  batch(() => {
    openChatId.value = id;
    openChatMissing.value = false;
    conversation.value = null;
    notice.value = null;
    pane.value = "chat";
    if (id !== null && findChat(chats.value, id)) conversation.value = new Conversation(id);
  });
  if (id !== null && conversation.value === null) void openUnlisted(id);
}

/** Asks for the chat before its stream: a refused stream would not tell that it does not exist. */
async function openUnlisted(id: string): Promise<void> {
  let missing = false;
  try {
    chats.value = upsertChat(chats.value, await api.chat(id));
  } catch (error) {
    missing = error instanceof ApiError && error.status === 404;
  }
  if (openChatId.value !== id) return;
  openChatMissing.value = missing;
  if (!missing) conversation.value = new Conversation(id);
}

/** Starts a chat with *text* and opens it. Throws ApiError. */
export async function createChat(text: string): Promise<void> {
  const model = currentModel.value;
  const own = model && currentEffort(null, model, me.value);
  const effort = chosenEffort(effortChoice.value, null, chosenModelId.value);
  const wanted = effort === undefined ? own : effort;
  const chat = await api.create(text, chosenModelId.value, planFirst.value, wanted ?? null);
  planFirst.value = false;
  effortChoice.value = null;
  chats.value = upsertChat(chats.value, chat);
  // Whoever opened another chat meanwhile is not taken away from it.
  if (openChatId.value === null) location.hash = chatHref(chat.id);
}

/** Sends *text* to the open chat. Throws ApiError. */
export async function sendMessage(
  text: string,
  busy: BusyBehavior,
  questionId: string | null = null,
): Promise<void> {
  const target = conversation.value;
  if (!target) return;
  notice.value = null;
  const sent = outgoing(text, target.state.value);
  batch(() => {
    target.sending.value = sent;
    target.failed.value = null;
    target.following.value = true;
  });
  try {
    const modelId = currentModel.value?.id ?? null;
    const effort = chosenEffort(effortChoice.value, target.chatId, modelId);
    const posted = await api.send(target.chatId, text, busy, questionId, effort);
    if (effort !== undefined) effortChoice.value = null;
    if (posted.warnings?.length) notice.value = posted.warnings.join("; ");
    const messages = posted.messages?.length
      ? posted.messages
      : posted.message
        ? [posted.message]
        : [];
    // The stream may have been quicker, and the queue may already be worked off.
    const queued = arrived(sent, target.state.value) ? null : (posted.queued_message ?? null);
    target.posted(messages, queued);
    void closeNotifications(chatHref(target.chatId)).catch(() => undefined);
  } catch (error) {
    target.failed.value = sent;
    throw error;
  } finally {
    target.sending.value = null;
  }
}

/** Stops the open chat's turn; a turn that has just ended by itself is fine. */
export async function stopChat(): Promise<void> {
  const target = conversation.value;
  if (!target) return;
  try {
    chats.value = upsertChat(chats.value, await api.interrupt(target.chatId));
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.status !== 409) notice.value = error.message;
  }
}

/** Renames, pins or puts away a chat; why it could not is told where the chat is. */
export async function changeChat(id: string, fields: ChatChange): Promise<void> {
  await tellProblem(api.change(id, fields));
}

/** Shows the chats that were put away, or those that were not. */
export async function toggleArchived(): Promise<void> {
  showsArchived.value = !showsArchived.value;
  if (!showsArchived.value) return;
  await tellProblem(
    api.archived().then((loaded) => {
      chats.value = loaded.reduce<readonly Chat[]>(upsertChat, chats.value);
    }),
  );
}

/** Says a message anew; everything behind it goes. Throws ApiError. */
export async function editMessage(messageId: number, text: string): Promise<void> {
  const target = conversation.value;
  if (!target) return;
  target.following.value = true;
  await api.edit(target.chatId, messageId, text);
}

export async function promoteQueued(chatId: string, queuedId: number): Promise<void> {
  await tellProblem(api.promoteQueued(chatId, queuedId));
}

/** Takes a queued message out; with *text* it goes back to where it was written. */
export async function deleteQueued(
  chatId: string,
  queuedId: number,
  text: string | null = null,
): Promise<void> {
  const isGone = await tellProblem(api.deleteQueued(chatId, queuedId).then(() => true));
  // One that was just let go is not written a second time.
  if (isGone && text !== null) takenBack.value = { chatId, text };
}

async function tellProblem<T>(work: Promise<T>): Promise<T | null> {
  notice.value = null;
  try {
    return await work;
  } catch (error) {
    notice.value = error instanceof Error ? error.message : String(error);
    return null;
  }
}
