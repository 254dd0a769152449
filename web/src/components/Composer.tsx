/** Below the conversation: write, queue, interrupt, stop. */

import { useEffect } from "preact/hooks";
import type { Conversation } from "../conversation";
import { arrived } from "../outgoing";
import { sendMessage, stopChat } from "../state";
import { isBusy } from "../wire";
import { EffortPicker } from "./EffortPicker";
import { Icon } from "./icons";
import { MessageInput } from "./MessageInput";
import { PlanSwitch } from "./PlanCards";

export function Composer({ conversation }: { conversation: Conversation }) {
  const { status } = conversation.state.value;
  const failed = conversation.failed.value;
  const busy = isBusy(status);
  useEffect(() => {
    if (!busy) return;
    const onKeyDown = (event: KeyboardEvent) => {
      // Esc belongs to an open dialog or an input method first.
      if (event.key !== "Escape" || event.isComposing || event.defaultPrevented) return;
      if (document.querySelector("dialog[open]")) return;
      void stopChat();
    };
    window.addEventListener("keydown", onKeyDown);
    return () => window.removeEventListener("keydown", onKeyDown);
  }, [busy]);
  return (
    <MessageInput
      draftKey={conversation.chatId}
      arrivedLate={failed !== null && arrived(failed, conversation.state.value)}
      placeholder={busy ? "Write the next message…" : "Write a message…"}
      sendLabel={busy ? "Queue message" : "Send message"}
      onSend={sendMessage}
    >
      <p class="keys wide-only">
        {busy ? (
          <>
            <kbd>Enter</kbd> queues, <kbd>Ctrl Shift Enter</kbd> steers, <kbd>Ctrl Enter</kbd>{" "}
            interrupts, <kbd>Esc</kbd> stops
          </>
        ) : (
          <>
            <kbd>Enter</kbd> sends, <kbd>Shift Enter</kbd> starts a line
          </>
        )}
      </p>
      <EffortPicker />
      {!busy && <PlanSwitch />}
      {busy && (
        <button
          type="button"
          class="button stop"
          data-testid="stop"
          disabled={status === "interrupting"}
          onClick={() => void stopChat()}
        >
          <Icon name="stop" /> Stop
        </button>
      )}
    </MessageInput>
  );
}
