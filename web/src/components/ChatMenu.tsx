/** The open chat's title, and what can be done with the chat: rename, pin, put away. */

import { useEffect, useRef, useState } from "preact/hooks";
import { changeChat } from "../state";
import type { Chat } from "../wire";
import { Icon } from "./icons";

const MAX_TITLE = 200;

export function ChatTitle({ chat }: { chat: Chat }) {
  const [renaming, setRenaming] = useState(false);
  if (renaming) return <TitleField chat={chat} onEnd={() => setRenaming(false)} />;
  return (
    <>
      <h1 title={chat.title} onDblClick={() => setRenaming(true)}>
        {chat.title || "Untitled"}
      </h1>
      <ChatMenu chat={chat} onRename={() => setRenaming(true)} />
    </>
  );
}

function TitleField({ chat, onEnd }: { chat: Chat; onEnd(): void }) {
  const field = useRef<HTMLInputElement>(null);
  const ended = useRef(false);
  useEffect(() => field.current?.select(), []);
  // Enter and Esc take the field away, which takes its focus: once is enough.
  const end = (isWanted: boolean) => {
    if (ended.current) return;
    ended.current = true;
    const title = field.current?.value.trim() ?? "";
    if (isWanted && title !== "" && title !== chat.title) void changeChat(chat.id, { title });
    onEnd();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.isComposing) return;
    if (event.key === "Enter") end(true);
    if (event.key !== "Escape") return;
    event.preventDefault();
    event.stopPropagation();
    end(false);
  };
  return (
    <input
      ref={field}
      class="title-field"
      aria-label="Title"
      data-testid="title-field"
      maxLength={MAX_TITLE}
      defaultValue={chat.title}
      onKeyDown={onKeyDown}
      onBlur={() => end(true)}
    />
  );
}

function ChatMenu({ chat, onRename }: { chat: Chat; onRename(): void }) {
  const menu = useRef<HTMLDetailsElement>(null);
  const close = () => {
    if (menu.current) menu.current.open = false;
  };
  useEffect(() => {
    const onPointer = (event: Event) => {
      if (!menu.current?.contains(event.target as Node)) close();
    };
    window.addEventListener("pointerdown", onPointer);
    return () => window.removeEventListener("pointerdown", onPointer);
  }, []);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || !menu.current?.open) return;
    event.preventDefault();
    event.stopPropagation();
    close();
    menu.current.querySelector("summary")?.focus();
  };
  const choose = (act: () => void) => () => {
    close();
    act();
  };
  const isRoot = !chat.parent_chat_id;
  const pinned = (chat.pin_order ?? 0) > 0;
  const pin = () => void changeChat(chat.id, { pin_order: pinned ? 0 : 1 });
  const archive = () => void changeChat(chat.id, { archived: !chat.archived });
  return (
    <details class="chat-menu" ref={menu} onKeyDown={onKeyDown}>
      <summary class="button small ghost icon-only" aria-label="Chat menu" data-testid="chat-menu">
        <Icon name="more" />
      </summary>
      <div class="menu-items">
        <button type="button" onClick={choose(onRename)}>
          Rename
        </button>
        {isRoot && !chat.archived && (
          <button type="button" onClick={choose(pin)}>
            {pinned ? "Unpin" : "Pin"}
          </button>
        )}
        {isRoot && (
          <button type="button" onClick={choose(archive)}>
            {chat.archived ? "Take out of the archive" : "Archive"}
          </button>
        )}
      </div>
    </details>
  );
}
