/** The scrolling conversation: turns, queue, retries and errors. */

import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import type { Conversation } from "../conversation";
import { openChat } from "../state";
import { buildTurns } from "../turns";
import { isBusy } from "../wire";
import type { ChatError, QueuedMessage, RetryPayload } from "../wire";
import { Icon } from "./icons";
import { TurnView } from "./TurnView";

// Pixels from the end within which new content keeps being followed.
const NEAR_END = 80;

export function ConversationView({ conversation }: { conversation: Conversation }) {
  const state = conversation.state.value;
  const turns = useMemo(() => buildTurns(state), [state]);
  const scroller = useRef<HTMLDivElement>(null);
  const column = useRef<HTMLDivElement>(null);
  const following = useSignal(true);

  const toEnd = () => {
    const element = scroller.current;
    if (element) element.scrollTop = element.scrollHeight;
  };
  useLayoutEffect(() => {
    if (following.peek()) toEnd();
  }, [state]);
  // Pictures and sub-agents' steps grow the page without a change of state.
  useEffect(() => {
    const element = column.current;
    if (!element) return;
    const observer = new ResizeObserver(() => following.peek() && toEnd());
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const onScroll = () => {
    const element = scroller.current;
    if (!element) return;
    const rest = element.scrollHeight - element.scrollTop - element.clientHeight;
    following.value = rest < NEAR_END;
  };
  const last = turns[turns.length - 1];
  const error =
    state.error ?? (state.status === "error" ? (openChat.value?.last_error ?? null) : null);
  const thinking = isBusy(state.status) && (state.preview?.parts.length ?? 0) === 0;
  return (
    <div class="conversation">
      <div class="scroller" ref={scroller} onScroll={onScroll}>
        <div class="column" ref={column} role="log" aria-label="Messages" aria-live="polite">
          {turns.map((turn) => (
            <TurnView key={turn.key} turn={turn} isLast={turn === last} />
          ))}
          {thinking && <Thinking />}
          {state.retry && <RetryNote retry={state.retry} />}
          {error && <ErrorNote error={error} />}
          {state.queue.map((message) => (
            <Queued key={message.id} message={message} />
          ))}
        </div>
      </div>
      {!following.value && (
        <button
          type="button"
          class="to-end"
          onClick={() => {
            following.value = true;
            toEnd();
          }}
        >
          <Icon name="down" /> Latest
        </button>
      )}
    </div>
  );
}

function Thinking() {
  return (
    <p class="thinking" aria-label="Working">
      <i />
      <i />
      <i />
    </p>
  );
}

function RetryNote({ retry }: { retry: RetryPayload }) {
  const seconds = Math.max(1, Math.round(retry.delay_ms / 1000));
  return (
    <p class="note warn" role="status">
      {retry.error} Trying again in {seconds} s (attempt {retry.attempt + 1}).
    </p>
  );
}

function ErrorNote({ error }: { error: ChatError }) {
  return (
    <div class="note error" role="alert" data-testid="chat-error">
      <p>{error.message}</p>
      {error.detail && (
        <details>
          <summary>Details</summary>
          <pre>{error.detail}</pre>
        </details>
      )}
    </div>
  );
}

function Queued({ message }: { message: QueuedMessage }) {
  const text = message.content.map((part) => (part.type === "text" ? part.text : "")).join("\n");
  return (
    <div class="bubble queued" data-testid="message-queued">
      <span class="queued-label">
        <Icon name="clock" /> queued
      </span>
      {text}
    </div>
  );
}
