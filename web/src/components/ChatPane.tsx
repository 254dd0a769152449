/** The middle: the open conversation, or the start screen. */

import {
  control,
  conversation,
  currentModel,
  notice,
  openChatId,
  desktopShown,
  openChat,
  openChatMissing,
  setDesktopShown,
} from "../state";
import { isBusy } from "../wire";
import type { ChatStatus } from "../wire";
import { ChatTitle } from "./ChatMenu";
import { ApprovalBar } from "./ApprovalBar";
import { CompactButton } from "./CompactButton";
import { ContextButton } from "./ContextDialog";
import { Composer } from "./Composer";
import { ConversationView } from "./ConversationView";
import { Icon } from "./icons";
import { McpButton } from "./McpDialog";
import { QuestionPanel } from "./PlanCards";
import { StartScreen } from "./StartScreen";
import { STATUS_WORDS } from "./StatusDot";

export function ChatPane() {
  const open = conversation.value;
  return (
    <main class="pane chat" aria-label="Conversation">
      <ChatHeader />
      {currentModel.value?.rehearsal && (
        <p class="banner" data-testid="rehearsal-banner">
          no model key: rehearsal model
        </p>
      )}
      {openChatMissing.value ? (
        <Missing />
      ) : open ? (
        <>
          <ConversationView key={open.chatId} conversation={open} />
          <ControlNote />
          <ApprovalBar conversation={open} />
          {!openChat.value?.archived && <QuestionPanel conversation={open} />}
          {notice.value && (
            <p class="note error notice" role="alert">
              {notice.value}
            </p>
          )}
          {openChat.value?.archived ? (
            <p class="note archived-note" role="status" data-testid="archived-note">
              This chat is archived. Take it out of the archive (menu above) to go on with it.
            </p>
          ) : (
            <Composer key={`c${open.chatId}`} conversation={open} />
          )}
        </>
      ) : (
        openChatId.value === null && <StartScreen />
      )}
    </main>
  );
}

/** Why the agent does nothing at the desktop just now. */
function ControlNote() {
  const state = control.value;
  if (state === null || state.holder === "agent") return null;
  return (
    <p class="note warn notice" role="status" data-testid="control-banner">
      {state.holder === "me" ? "You have" : `${state.name ?? "A person"} has`} control of the
      desktop: the agent sees it, and its input waits until control is given back.
    </p>
  );
}

function ChatHeader() {
  const chat = openChat.value;
  const open = conversation.value;
  const status = open?.state.value.status ?? chat?.status ?? null;
  return (
    <header class="bar">
      {chat ? (
        <ChatTitle key={chat.id} chat={chat} />
      ) : (
        <h1>{openChatId.value ? "Chat" : "New chat"}</h1>
      )}
      {open?.connection.value === "reconnecting" ? (
        <span class="pill warn" role="status" data-testid="reconnecting">
          reconnecting…
        </span>
      ) : (
        // What was known before the loss may no longer be so.
        open && status && <StatusPill status={status} />
      )}
      {chat && <ContextButton chat={chat} />}
      {chat && <McpButton chatId={chat.id} />}
      {chat && open && !isBusy(open.state.value.status) && <CompactButton chatId={chat.id} />}
      {chat && currentModel.value && (
        <span class="model-name">{currentModel.value.display_name}</span>
      )}
      {!desktopShown.value && (
        <button
          type="button"
          class="button small ghost wide-only"
          onClick={() => setDesktopShown(true)}
        >
          <Icon name="desktop" /> Show desktop
        </button>
      )}
    </header>
  );
}

function StatusPill({ status }: { status: ChatStatus }) {
  return (
    <span class="pill" role="status">
      <span class="dot" data-status={status} aria-hidden="true" />
      <span data-testid="status">{STATUS_WORDS[status]}</span>
    </span>
  );
}

function Missing() {
  return (
    <div class="scroller">
      <div class="start">
        <h2>This chat does not exist</h2>
        <p class="lead">It may have been removed, or it belongs to somebody else.</p>
      </div>
    </div>
  );
}
