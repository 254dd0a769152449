/** What is shown while no chat is open: a greeting, examples, and the first message's field. */

import { useState } from "preact/hooks";
import { chosenModelId, createChat, me } from "../state";
import { Sending } from "./ConversationView";
import { EffortPicker } from "./EffortPicker";
import { InlineCode } from "./InlineCode";
import { Icon } from "./icons";
import type { IconName } from "./icons";
import { MessageInput } from "./MessageInput";
import { PlanSwitch } from "./PlanCards";

const EXAMPLES: { icon: IconName; text: string }[] = [
  { icon: "terminal", text: "open a terminal and run `uname -a`, then tell me what it says" },
  { icon: "desktop", text: "take a screenshot and describe what is on the desktop" },
  { icon: "pointer", text: "open a terminal, press ctrl+l and type “hello from the desktop”" },
];

export function StartScreen() {
  const [failure, setFailure] = useState<string | null>(null);
  const [sending, setSending] = useState<string | null>(null);
  const begin = async (text: string) => {
    setFailure(null);
    setSending(text);
    try {
      await createChat(text);
    } finally {
      setSending(null);
    }
  };
  const beginExample = (text: string) =>
    begin(text).catch((error: Error) => setFailure(error.message));
  return (
    <>
      <div class="scroller">
        <div class="start">
          <img src="assets/icon.svg" alt="" width="44" height="44" />
          <h2>What shall the computer do?</h2>
          <p class="lead">
            The assistant sees this workspace’s desktop and uses its mouse, keyboard and shell. You
            watch every step.
          </p>
          <ul class="examples" aria-label="Examples">
            {EXAMPLES.map(({ icon, text }) => (
              <li key={text}>
                <button
                  type="button"
                  data-testid="example"
                  disabled={sending !== null}
                  onClick={() => void beginExample(text)}
                >
                  <Icon name={icon} />
                  <span>
                    <InlineCode text={text} />
                  </span>
                </button>
              </li>
            ))}
          </ul>
          {sending !== null && <Sending text={sending} />}
          {failure && (
            <p class="note error" role="alert">
              {failure}
            </p>
          )}
        </div>
      </div>
      <MessageInput
        draftKey="new"
        placeholder="Ask for anything…"
        sendLabel="Start chat"
        onSend={begin}
      >
        <ModelPicker />
        <EffortPicker />
        <PlanSwitch />
      </MessageInput>
    </>
  );
}

function ModelPicker() {
  const models = me.value?.models ?? [];
  return (
    <label class="model-picker">
      <span class="visually-hidden">Model</span>
      <select
        data-testid="model-picker"
        value={chosenModelId.value ?? ""}
        onChange={(event) => (chosenModelId.value = event.currentTarget.value)}
      >
        {models.map((model) => (
          <option key={model.id} value={model.id}>
            {model.display_name}
          </option>
        ))}
      </select>
    </label>
  );
}
