/** How hard the model thinks: chosen beside the field, sent with the next message. */

import { signal } from "@preact/signals";
import type { Chat, Me, ModelConfig, ReasoningEffort } from "./wire";

/** A choice that was not sent yet; *effort* null is "as the model does by itself". */
export interface EffortChoice {
  /** Null for the chat that is about to begin. */
  chatId: string | null;
  modelId: string | null;
  effort: ReasoningEffort | null;
}

export const effortChoice = signal<EffortChoice | null>(null);

/** Pure: what is chosen for the next message of *chat* (or a new one); undefined: nothing anew. */
export function chosenEffort(
  choice: EffortChoice | null,
  chatId: string | null,
  modelId: string | null,
): ReasoningEffort | null | undefined {
  const isMine = choice !== null && choice.chatId === chatId && choice.modelId === modelId;
  return isMine ? choice.effort : undefined;
}

/** Pure: what holds while nothing is chosen anew. */
export function currentEffort(
  chat: Chat | null,
  model: ModelConfig,
  me: Me | null,
): ReasoningEffort | null {
  if (chat !== null) return chat.last_reasoning_effort ?? null;
  return me?.default_model_config_id === model.id ? (me.default_reasoning_effort ?? null) : null;
}
