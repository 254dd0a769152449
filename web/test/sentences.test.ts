import assert from "node:assert/strict";
import { test } from "node:test";
import { describeCall } from "../src/sentences";
import type { JsonObject } from "../src/wire";

const describe = (tool_name: string, args: JsonObject) =>
  describeCall({ type: "tool-call", tool_call_id: "t", tool_name, args });
const computer = (...actions: JsonObject[]) => describe("computer", { actions });

const cases: [JsonObject, string][] = [
  [{ action: "left_click", coordinate: [100, 200] }, "Click at (100, 200)"],
  [{ action: "left_click", coordinate: [0, 0] }, "Click at (0, 0)"],
  [{ action: "right_click" }, "Right-click"],
  [
    { action: "double_click", coordinate: [1, 2], modifiers: "ctrl" },
    "Double-click at (1, 2) with ctrl",
  ],
  [{ action: "click", coordinate: [1, 2] }, "Click left at (1, 2)"],
  [
    { action: "click", button: "right", count: 2, modifiers: "ctrl" },
    "Double-click right with ctrl",
  ],
  [{ action: "type", text: "uname -a" }, "Type “uname -a”"],
  [{ action: "key", text: "ctrl+alt+t" }, "Press ctrl+alt+t"],
  [{ action: "hold_key", text: "a", duration_ms: 1500 }, "Hold a for 1.5 s"],
  [{ action: "wait", duration_ms: 2000 }, "Wait 2 s"],
  [{ action: "scroll", coordinate: [5, 6], scroll_amount: 3 }, "Scroll down 3 at (5, 6)"],
  [{ action: "zoom", region: [0, 0, 10, 20] }, "Zoom into (0, 0) to (10, 20)"],
  [
    {
      action: "drag",
      path: [
        [1, 2],
        [3, 4],
        [5, 6],
      ],
    },
    "Drag from (1, 2) to (5, 6)",
  ],
  [{ action: "screenshot" }, "Look at the screen"],
  [{ action: "brand_new" }, "brand new"],
];

for (const [action, sentence] of cases) {
  test(`${String(action.action)} reads “${sentence}”`, () => {
    assert.equal(computer(action), sentence);
  });
}

test("several actions make one sentence, and many are counted", () => {
  const click = { action: "left_click", coordinate: [1, 2] };
  const key = { action: "key", text: "Return" };

  assert.equal(computer(click, key), "Click at (1, 2), press Return");
  assert.equal(
    computer(key, key, key, key, key),
    "Press Return, press Return, press Return and 2 more",
  );
});

test("a line break in typed text is shown as a sign", () => {
  assert.equal(computer({ action: "type", text: "ls\n" }), "Type “ls ⏎”");
});

test("other tools are described by their arguments or else by their name", () => {
  assert.equal(describe("execute", { command: "ls" }), "Run “ls”");
  assert.equal(describe("github__list_issues", {}), "list issues (github)");
  assert.equal(
    describe("chat_summarized", { source: "automatic" }),
    "Summarise the conversation to save space",
  );
});

test("arguments that are still being written do not break the sentence", () => {
  const call = { type: "tool-call", tool_call_id: "t", tool_name: "computer" } as const;

  assert.equal(describeCall({ ...call, args_delta: '{"actions": [{"act' }), "Use the computer");
});
