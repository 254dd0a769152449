import assert from "node:assert/strict";
import { test } from "node:test";
import { pendingApprovals } from "../src/approvals";
import { emptyConversation } from "../src/stream";
import type { Message, Part } from "../src/wire";

const call = (id: string, more: object = {}) =>
  ({ type: "tool-call", tool_call_id: id, tool_name: "computer", args: {}, ...more }) as Part;
const message = (...content: Part[]) =>
  ({ id: 1, chat_id: "c", role: "assistant", content, visibility: "both" }) as unknown as Message;

test("only what the vendor wants allowed and nobody answered waits for a person", () => {
  const reason = { needs_approval: ["A bank"] };
  const result = { type: "tool-result", tool_call_id: "c", tool_name: "computer" } as Part;
  const messages = [
    message(call("a", reason), call("b"), call("c", reason), result),
    message(call("d", { ...reason, approved: true })),
  ];
  const state = { ...emptyConversation, messages, status: "requires_action" as const };

  assert.deepEqual(
    pendingApprovals(state).map((part) => part.tool_call_id),
    ["a"],
  );
  assert.deepEqual(pendingApprovals({ ...state, status: "running" }), []);
});
