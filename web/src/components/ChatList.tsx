/** The list of chats, sub-agents nested under the chat that started them. */

import { useSignal } from "@preact/signals";
import { api } from "../api";
import {
  chatHref,
  chats,
  chatsLoaded,
  listConnected,
  me,
  now,
  openChatId,
  pane,
  showsArchived,
  toggleArchived,
} from "../state";
import { fullTime, relativeTime } from "../time";
import type { Chat } from "../wire";
import { Icon } from "./icons";
import { NotifyButton } from "./NotifyButton";
import { StatusDot } from "./StatusDot";

export function ChatList() {
  const shown = chats.value.filter((chat) => chat.archived === showsArchived.value);
  return (
    <nav class="pane chats" aria-label="Chats">
      <header class="bar">
        <h2>{showsArchived.value ? "Archive" : "Chats"}</h2>
        <a
          class="button small"
          href="#/"
          data-testid="new-chat"
          onClick={() => (pane.value = "chat")}
        >
          <Icon name="plus" /> New chat
        </a>
      </header>
      <ul class="chat-list" data-testid="chat-list" data-stale={!listConnected.value}>
        {shown.map((chat) => (
          <li key={chat.id}>
            <ChatLink chat={chat} />
            {chat.children.length > 0 && (
              <ul class="sub-chats" aria-label="Sub-agents">
                {chat.children.map((child) => (
                  <li key={child.id}>
                    <ChatLink chat={child} />
                  </li>
                ))}
              </ul>
            )}
          </li>
        ))}
      </ul>
      {chatsLoaded.value && shown.length === 0 && (
        <p class="hint">{showsArchived.value ? "Nothing is archived." : "No chats yet."}</p>
      )}
      {!listConnected.value && (
        <p class="hint" role="status">
          Reconnecting…
        </p>
      )}
      <footer class="who">
        <button
          type="button"
          class="linklike"
          data-testid="show-archived"
          aria-pressed={showsArchived.value}
          onClick={() => void toggleArchived()}
        >
          {showsArchived.value ? "Back to chats" : "Archive"}
        </button>
        <SignOut />
        <NotifyButton />
        <span>{me.value?.version}</span>
      </footer>
    </nav>
  );
}

/** Who is logged in, and the way out. */
function SignOut() {
  const failed = useSignal<string | null>(null);
  const known = me.value;
  if (known === null) return null;
  const leave = async () => {
    try {
      await api.logout();
      // Everything of this user goes: drafts, the conversation, open sockets.
      location.replace(location.pathname);
    } catch (error) {
      failed.value = error instanceof Error ? error.message : String(error);
    }
  };
  return (
    <span class="signed-in">
      <span data-testid="user-name" title={known.user.is_admin ? "Administrator" : undefined}>
        {known.user.name}
      </span>
      {known.session && (
        <button type="button" class="linklike" data-testid="sign-out" onClick={() => void leave()}>
          Sign out
        </button>
      )}
      {failed.value !== null && <span role="alert">{failed.value}</span>}
    </span>
  );
}

function ChatLink({ chat }: { chat: Chat }) {
  // What is open is being read.
  const unread = !!chat.has_unread && chat.id !== openChatId.value;
  return (
    <a
      class="chat-item"
      data-unread={unread}
      href={chatHref(chat.id)}
      data-testid="chat-item"
      data-chat-id={chat.id}
      aria-current={chat.id === openChatId.value ? "page" : undefined}
      title={chat.title || "Untitled"}
      onClick={() => (pane.value = "chat")}
    >
      <StatusDot status={chat.status} />
      <span class="chat-title">
        {chat.title || "Untitled"}
        {unread && <span class="visually-hidden"> (unread)</span>}
      </span>
      {(chat.pin_order ?? 0) > 0 && (
        <span class="pinned" title="Pinned">
          <Icon name="pin" />
        </span>
      )}
      <time dateTime={chat.updated_at} title={fullTime(chat.updated_at)}>
        {relativeTime(chat.updated_at, now.value)}
      </time>
    </a>
  );
}
