/** The text field that both the start screen and the conversation use. */

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "../api";
import { isWide } from "../viewport";
import { Icon } from "./icons";

export interface MessageInputProps {
  placeholder: string;
  sendLabel: string;
  /** Called with the trimmed text; the text is kept when it throws. */
  onSend(text: string, urgent: boolean): Promise<void>;
  children?: ComponentChildren;
}

export function MessageInput(props: MessageInputProps) {
  const [text, setText] = useState("");
  const [sending, setSending] = useState(false);
  const [failure, setFailure] = useState<string | null>(null);
  const field = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => fitHeight(field.current), [text]);

  useEffect(() => {
    // On a touch screen focus would raise the keyboard; elsewhere it must not be taken from a link.
    if (isWide.peek() && document.activeElement === document.body) field.current?.focus();
  }, []);

  const send = async (urgent: boolean) => {
    const trimmed = text.trim();
    if (trimmed === "" || sending) return;
    setSending(true);
    setFailure(null);
    setText("");
    try {
      await props.onSend(trimmed, urgent);
    } catch (error) {
      // What was typed meanwhile stays, below what was not sent.
      setText((typed) => (typed === "" ? trimmed : `${trimmed}\n${typed}`));
      setFailure(error instanceof ApiError ? error.message : String(error));
    } finally {
      setSending(false);
      field.current?.focus();
    }
  };
  const onKeyDown = (event: KeyboardEvent) => {
    // An input method's Enter accepts its suggestion; it does not send.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    void send(event.ctrlKey || event.metaKey);
  };
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        void send(false);
      }}
    >
      {failure && (
        <p class="note error" role="alert">
          {failure}
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
          onInput={(event) => setText(event.currentTarget.value)}
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
            disabled={sending || text.trim() === ""}
          >
            <Icon name="send" />
          </button>
        </div>
      </div>
    </form>
  );
}

/** Grows the field with its text; the stylesheet bounds it. */
function fitHeight(field: HTMLTextAreaElement | null): void {
  if (!field) return;
  field.style.height = "auto";
  field.style.height = `${field.scrollHeight}px`;
}
