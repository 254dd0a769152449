import assert from "node:assert/strict";
import { test } from "node:test";
import { MOST_CHARACTERS, lengthProblem } from "../src/limits";

test("a message of the greatest length can be sent, whatever its characters", () => {
  assert.equal(lengthProblem("a".repeat(MOST_CHARACTERS)), null);
  assert.equal(lengthProblem("🙂".repeat(MOST_CHARACTERS)), null);
});

test("a longer message is refused with its length and the limit", () => {
  assert.match(lengthProblem("a".repeat(MOST_CHARACTERS + 1)) ?? "", /200,001 .* 200,000/);
});
