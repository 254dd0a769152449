/** The text field that both the start screen and the conversation use. */

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "../api";
import { loadDraft, saveDraft } from "../drafts";
import { lengthProblem } from "../limits";
import { rejoin, withoutSent } from "../outgoing";
import { takenBack } from "../state";
import { isWide } from "../viewport";
import type { BusyBehavior } from "../wire";
import { Icon } from "./icons";

export interface MessageInputProps {
  /** Under what unsent text is kept. */
  draftKey: string;
  placeholder: string;
  sendLabel: string;
  /** Called with the trimmed text; the text is kept when it throws. */
  onSend(text: string, how: BusyBehavior): Promise<void>;
  /** True once a message whose sending failed turns out to have been received. */
  arrivedLate?: boolean;
  children?: ComponentChildren;
}

interface Failure {
  reason: string;
  text: string;
  how: BusyBehavior;
}

export function MessageInput(props: MessageInputProps) {
  const { text, typed, change, hold } = useDraft(props.draftKey);
  const [sending, setSending] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  const field = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => fitHeight(field.current), [text]);
  useEffect(() => refitWithWidth(field.current), []);
  const problem = lengthProblem(text.trim());

  useEffect(() => {
    const back = takenBack.value;
    if (back === null || back.chatId !== props.draftKey) return;
    takenBack.value = null;
    change(rejoin(back.text, typed.current));
    field.current?.focus();
  }, [takenBack.value]);

  useEffect(() => {
    if (!props.arrivedLate || !failure) return;
    const rest = withoutSent(typed.current, failure.text);
    if (rest !== null) change(rest);
    setFailure(null);
  }, [props.arrivedLate, failure]);

  useEffect(() => {
    // On a touch screen focus would raise the keyboard; elsewhere it must not be taken from a link.
    if (isWide.peek() && document.activeElement === document.body) field.current?.focus();
  }, []);

  const send = async (how: BusyBehavior) => {
    const trimmed = text.trim();
    if (trimmed === "" || sending || problem !== null) return;
    setSending(true);
    setFailure(null);
    hold(trimmed);
    change("");
    try {
      await props.onSend(trimmed, how);
      hold(null);
    } catch (error) {
      hold(null);
      change(rejoin(trimmed, typed.current));
      const reason = error instanceof ApiError ? error.message : String(error);
      setFailure({ reason, text: trimmed, how });
    } finally {
      setSending(false);
      field.current?.focus();
    }
  };
  const onKeyDown = (event: KeyboardEvent) => {
    // An input method's Enter accepts its suggestion; it does not send.
    if (event.key !== "Enter" || event.isComposing) return;
    const urgent = event.ctrlKey || event.metaKey;
    if (event.shiftKey && !urgent) return;
    event.preventDefault();
    void send(!urgent ? "queue" : event.shiftKey ? "steer" : "interrupt");
  };
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        void send("queue");
      }}
    >
      {problem && (
        <p class="note error" role="alert" data-testid="composer-problem">
          {problem}
        </p>
      )}
      {failure && !problem && (
        <p class="note error failure" role="alert" data-testid="send-failure">
          <span>{failure.reason} The message was not confirmed; its text is below.</span>
          <button
            type="button"
            class="button small"
            data-testid="send-again"
            disabled={text.trim() === ""}
            onClick={() => void send(failure.how)}
          >
            Try again
          </button>
        </p>
      )}
      <div class="composer-box">
        <textarea
          ref={field}
          rows={1}
          data-testid="composer"
          aria-label="Message"
          placeholder={props.placeholder}
          value={text}
          onInput={(event) => change(event.currentTarget.value)}
          onKeyDown={onKeyDown}
        />
        <div class="composer-row">
          {props.children}
          <button
            type="submit"
            class="button primary round"
            data-testid="send"
            aria-label={props.sendLabel}
            title={props.sendLabel}
            disabled={sending || problem !== null || text.trim() === ""}
          >
            <Icon name="send" />
          </button>
        </div>
      </div>
    </form>
  );
}

/** The field's text, kept in storage together with the text that is being sent. */
function useDraft(key: string) {
  const [text, setText] = useState(() => loadDraft(key));
  // References outlive the component: an answer may come after the chat was left.
  const typed = useRef(text);
  const held = useRef<string | null>(null);
  const keep = () => saveDraft(key, rejoin(held.current, typed.current));
  const change = (value: string) => {
    typed.current = value;
    setText(value);
    keep();
  };
  const hold = (value: string | null) => {
    held.current = value;
    keep();
  };
  return { text, typed, change, hold };
}

/** Another width breaks lines elsewhere, and the narrow layout has larger letters. */
function refitWithWidth(field: HTMLTextAreaElement | null): (() => void) | undefined {
  if (!field) return undefined;
  let width = field.clientWidth;
  const observer = new ResizeObserver(() => {
    if (field.clientWidth === width) return;
    width = field.clientWidth;
    fitHeight(field);
  });
  observer.observe(field);
  return () => observer.disconnect();
}

/** Grows the field with its text; the stylesheet bounds it. */
function fitHeight(field: HTMLTextAreaElement | null): void {
  // A hidden field has no height to copy.
  if (!field || field.clientWidth === 0) return;
  field.style.height = "auto";
  field.style.height = `${field.scrollHeight}px`;
}
