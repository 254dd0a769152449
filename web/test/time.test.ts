import assert from "node:assert/strict";
import { test } from "node:test";
import { duration, secondsLeft } from "../src/time";

const retry = { retrying_at: "2026-01-01T00:00:30Z", delay_ms: 30_000 };
const at = (second: number) => Date.UTC(2026, 0, 1, 0, 0, second);

test("a wait is counted down to nothing", () => {
  assert.deepEqual(
    [0, 1, 29, 30, 31].map((second) => secondsLeft(retry, at(second))),
    [30, 29, 1, 0, 0],
  );
});

test("a clock that is late shows no more than the delay", () => {
  assert.equal(secondsLeft(retry, at(-600)), 30);
});

test("long waits are told in minutes", () => {
  assert.deepEqual([5, 59, 60, 125].map(duration), ["5 s", "59 s", "1 min 0 s", "2 min 5 s"]);
});
