/** The scrolling conversation: turns, queue, retries and errors. */

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Conversation } from "../conversation";
import { followsAfterScroll } from "../follow";
import { arrived, textOf } from "../outgoing";
import { deleteQueued, openChat, promoteQueued } from "../state";
import { duration, secondsLeft } from "../time";
import { buildTurns } from "../turns";
import { isBusy } from "../wire";
import type { ChatError, QueuedMessage, RetryPayload } from "../wire";
import { Icon } from "./icons";
import { TurnView } from "./TurnView";

export function ConversationView({ conversation }: { conversation: Conversation }) {
  const state = conversation.state.value;
  const turns = useMemo(() => buildTurns(state), [state]);
  const scroller = useRef<HTMLDivElement>(null);
  const column = useRef<HTMLDivElement>(null);
  const lastTop = useRef(0);
  const { following } = conversation;
  const lost = conversation.connection.value === "reconnecting";
  const sending = conversation.sending.value;

  const toEnd = () => {
    const element = scroller.current;
    if (!element) return;
    element.scrollTop = element.scrollHeight;
    lastTop.current = element.scrollTop;
  };
  useLayoutEffect(() => {
    if (following.peek()) toEnd();
  }, [state, sending, following.value]);
  // Pictures and sub-agents' steps grow the page, and a long text its field, without a change of state.
  useEffect(() => {
    const observer = new ResizeObserver(() => following.peek() && toEnd());
    for (const { current } of [column, scroller]) if (current) observer.observe(current);
    return () => observer.disconnect();
  }, []);
  const onScroll = () => {
    const element = scroller.current;
    if (!element) return;
    following.value = followsAfterScroll(following.peek(), lastTop.current, element);
    lastTop.current = element.scrollTop;
  };
  const last = turns[turns.length - 1];
  const error =
    state.error ?? (state.status === "error" ? (openChat.value?.last_error ?? null) : null);
  const thinking =
    !lost && !state.retry && isBusy(state.status) && (state.preview?.parts.length ?? 0) === 0;
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
            <Queued key={message.id} message={message} chatId={conversation.chatId} />
          ))}
          {sending && !arrived(sending, state) && <Sending text={sending.text} />}
        </div>
      </div>
      {!following.value && (
        <button type="button" class="to-end" onClick={() => (following.value = true)}>
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
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 250);
    return () => clearInterval(timer);
  }, []);
  const left = secondsLeft(retry, now);
  // Whoever listens is told once; the number is for the eye.
  return (
    <p class="note warn" role="status" data-testid="retry">
      {retry.error} Trying again{" "}
      <span aria-hidden="true">{left > 0 ? `in ${duration(left)}` : "now"}</span> (attempt{" "}
      {retry.attempt + 1}).
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

function Queued({ message, chatId }: { message: QueuedMessage; chatId: string }) {
  const text = textOf(message.content);
  return (
    <div class="bubble queued" data-testid="message-queued">
      <span class="queued-label">
        <Icon name="clock" /> {message.steer ? "for the next step" : "queued"}
        <span
          class="queued-actions"
          role="group"
          aria-label={`Queued message: ${text.slice(0, 40)}`}
        >
          <button
            type="button"
            title="Stop the turn and send this now"
            onClick={() => void promoteQueued(chatId, message.id)}
          >
            Send now
          </button>
          <button
            type="button"
            title="Take it back into the field"
            onClick={() => void deleteQueued(chatId, message.id, text)}
          >
            Edit
          </button>
          <button
            type="button"
            title="Do not send it"
            onClick={() => void deleteQueued(chatId, message.id)}
          >
            Delete
          </button>
        </span>
      </span>
      {text}
    </div>
  );
}

/** A message that the server has not answered yet. */
export function Sending({ text }: { text: string }) {
  return (
    <div class="bubble queued" role="status" data-testid="message-sending">
      <span class="queued-label">
        <Icon name="clock" /> sending…
      </span>
      {text}
    </div>
  );
}
