/** A message being said anew, in its place. */

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { lengthProblem } from "../limits";
import { editMessage } from "../state";

interface EditMessageProps {
  messageId: number;
  text: string;
  onEnd(): void;
}

export function EditMessage({ messageId, text, onEnd }: EditMessageProps) {
  const [value, setValue] = useState(text);
  const [saving, setSaving] = useState(false);
  const [failure, setFailure] = useState<string | null>(null);
  const field = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => {
    field.current?.focus();
    field.current?.setSelectionRange(text.length, text.length);
  }, []);
  const wanted = value.trim();
  const problem = lengthProblem(wanted);
  const save = async () => {
    if (wanted === "" || saving || problem !== null) return;
    setSaving(true);
    try {
      await editMessage(messageId, wanted);
      onEnd();
    } catch (error) {
      setFailure(error instanceof Error ? error.message : String(error));
      setSaving(false);
    }
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.isComposing) return;
    if (event.key === "Escape") {
      // It ends the editing, not the turn.
      event.preventDefault();
      event.stopPropagation();
      onEnd();
    } else if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      void save();
    }
  };
  return (
    <form
      class="bubble editing"
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      <textarea
        ref={field}
        aria-label="Edited message"
        data-testid="edit-field"
        rows={Math.min(10, value.split("\n").length + 1)}
        value={value}
        onInput={(event) => setValue(event.currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      {(failure ?? problem) && (
        <p class="note error" role="alert">
          {failure ?? problem}
        </p>
      )}
      <p class="edit-row">
        <span class="keys">What was said after it goes.</span>
        <button type="button" class="button small ghost" onClick={onEnd}>
          Cancel
        </button>
        <button
          type="submit"
          class="button small primary"
          disabled={wanted === "" || saving || problem !== null}
        >
          Send
        </button>
      </p>
    </form>
  );
}
