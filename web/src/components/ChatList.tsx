/** The list of chats, sub-agents nested under the chat that started them. */

import { chatHref, chats, chatsLoaded, listConnected, me, now, openChatId, pane } from "../state";
import { fullTime, relativeTime } from "../time";
import type { Chat } from "../wire";
import { Icon } from "./icons";
import { StatusDot } from "./StatusDot";

export function ChatList() {
  const shown = chats.value.filter((chat) => !chat.archived);
  return (
    <nav class="pane chats" aria-label="Chats">
      <header class="bar">
        <h2>Chats</h2>
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
      {chatsLoaded.value && shown.length === 0 && <p class="hint">No chats yet.</p>}
      {!listConnected.value && (
        <p class="hint" role="status">
          Reconnecting…
        </p>
      )}
      <footer class="who">
        <span>{me.value?.user.name}</span>
        <span>{me.value?.version}</span>
      </footer>
    </nav>
  );
}

function ChatLink({ chat }: { chat: Chat }) {
  return (
    <a
      class="chat-item"
      href={chatHref(chat.id)}
      data-testid="chat-item"
      data-chat-id={chat.id}
      aria-current={chat.id === openChatId.value ? "page" : undefined}
      title={chat.title || "Untitled"}
      onClick={() => (pane.value = "chat")}
    >
      <StatusDot status={chat.status} />
      <span class="chat-title">{chat.title || "Untitled"}</span>
      <time dateTime={chat.updated_at} title={fullTime(chat.updated_at)}>
        {relativeTime(chat.updated_at, now.value)}
      </time>
    </a>
  );
}
