/** How hard the model thinks, where it offers a choice. */

import { chosenEffort, currentEffort, effortChoice } from "../effort";
import { currentModel, me, openChat } from "../state";
import type { ReasoningEffort } from "../wire";

const WORDS: Record<ReasoningEffort, string> = {
  none: "No effort",
  minimal: "Minimal effort",
  low: "Low effort",
  medium: "Medium effort",
  high: "High effort",
  xhigh: "Very high effort",
  max: "Most effort",
};

export function EffortPicker() {
  const model = currentModel.value;
  if (model === null || !model.reasoning_efforts?.length) return null;
  const chat = openChat.value;
  const place = { chatId: chat?.id ?? null, modelId: model.id };
  const held = currentEffort(chat, model, me.value);
  const value = chosenEffort(effortChoice.value, place.chatId, place.modelId) ?? held;
  const isAnew = chosenEffort(effortChoice.value, place.chatId, place.modelId) === null;
  const change = (word: string) => {
    effortChoice.value = { ...place, effort: word === "" ? null : (word as ReasoningEffort) };
  };
  return (
    <label
      class="model-picker effort-picker"
      title="How hard the model thinks, from the next message on"
    >
      <span class="visually-hidden">Reasoning effort</span>
      <select
        data-testid="effort-picker"
        value={isAnew ? "" : (value ?? "")}
        onChange={(event) => change(event.currentTarget.value)}
      >
        <option value="">
          {model.default_reasoning_effort
            ? `${WORDS[model.default_reasoning_effort]} (default)`
            : "Usual effort"}
        </option>
        {model.reasoning_efforts.map((effort) => (
          <option key={effort} value={effort}>
            {WORDS[effort]}
          </option>
        ))}
      </select>
    </label>
  );
}
