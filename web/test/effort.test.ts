import assert from "node:assert/strict";
import { test } from "node:test";
import { chosenEffort, currentEffort } from "../src/effort";
import type { Chat, Me, ModelConfig } from "../src/wire";

const model = { id: "m", reasoning_efforts: ["low", "high"] } as unknown as ModelConfig;
const me = { default_model_config_id: "m", default_reasoning_effort: "low" } as Me;
const choice = { chatId: "c", modelId: "m", effort: "high" } as const;

test("a choice is for the chat and model that it was made beside", () => {
  assert.equal(chosenEffort(choice, "c", "m"), "high");
  assert.equal(chosenEffort({ ...choice, effort: null }, "c", "m"), null);
  assert.equal(chosenEffort(choice, "d", "m"), undefined);
  assert.equal(chosenEffort(choice, "c", "n"), undefined);
  assert.equal(chosenEffort(null, "c", "m"), undefined);
});

test("without a choice a chat keeps its own, a new one has its person's", () => {
  assert.equal(currentEffort({ last_reasoning_effort: "high" } as Chat, model, me), "high");
  assert.equal(currentEffort({} as Chat, model, me), null);
  assert.equal(currentEffort(null, model, me), "low");
  assert.equal(currentEffort(null, { ...model, id: "n" }, me), null);
  assert.equal(currentEffort(null, model, null), null);
});
