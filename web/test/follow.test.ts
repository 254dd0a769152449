import assert from "node:assert/strict";
import { test } from "node:test";
import { followsAfterScroll } from "../src/follow";

const at = (scrollTop: number, scrollHeight = 1000, clientHeight = 400) => ({
  scrollTop,
  scrollHeight,
  clientHeight,
});

test("moving up stops following, and coming near the end starts it again", () => {
  assert.equal(followsAfterScroll(true, 600, at(300)), false);
  assert.equal(followsAfterScroll(false, 300, at(550)), true);
});

test("content that grew below does not stop following", () => {
  assert.equal(followsAfterScroll(true, 600, at(600, 2000)), true);
});

test("moving down without reaching the end does not start following", () => {
  assert.equal(followsAfterScroll(false, 100, at(300)), false);
});

test("a hidden conversation keeps what it did", () => {
  assert.equal(followsAfterScroll(true, 600, at(0, 0, 0)), true);
  assert.equal(followsAfterScroll(false, 300, at(0, 0, 0)), false);
});
