import assert from "node:assert/strict";
import { test } from "node:test";
import { attachmentOf, childChatId, filmOf, readResult } from "../src/results";
import type { ToolCallPart, ToolResultPart } from "../src/wire";

const part = (fields: Partial<ToolResultPart>): ToolResultPart => ({
  type: "tool-result",
  tool_call_id: "t",
  tool_name: "x",
  ...fields,
});
const call = (tool_name: string, args = {}): ToolCallPart => ({
  type: "tool-call",
  tool_call_id: "t",
  tool_name,
  args,
});

test("plain output and errors are shown as their text", () => {
  assert.equal(readResult(part({ result: { output: "hi" } })).text, "hi");
  assert.equal(readResult(part({ result: { error: "no" }, is_error: true })).text, "no");
});

test("a picture is referred to by its file id", () => {
  const result = { file_id: "f", mime_type: "image/png", text: "done" };

  assert.deepEqual(readResult(part({ result, is_media: true })), {
    text: "done",
    imageFileId: "f",
  });
});

test("other JSON is shown as JSON", () => {
  assert.equal(readResult(part({ result: { exit_code: 0 } })).text, '{\n  "exit_code": 0\n}');
});

test("the sub-agent's chat is read from the result, its text, or the arguments", () => {
  const json = part({ result: { chat_id: "a" } });
  const text = part({ result: { output: '{"chat_id":"b"}' } });

  assert.equal(childChatId(call("spawn_agent"), json), "a");
  assert.equal(childChatId(call("spawn_computer_use_agent"), text), "b");
  assert.equal(childChatId(call("wait_agent", { chat_id: "c" }), null), "c");
  assert.equal(childChatId(call("execute", { chat_id: "d" }), null), null);
});

test("a film and its thumbnail are named by the result of a wait", () => {
  const result = { report: "done", recording_file_id: "f", thumbnail_file_id: "t" };

  assert.deepEqual(filmOf(part({ result })), { film: "f", thumbnail: "t" });
  assert.deepEqual(filmOf(part({ result: "text" })), { film: null, thumbnail: null });
  assert.deepEqual(filmOf(null), { film: null, thumbnail: null });
});

test("an attached file is shown as one, a failure is not", () => {
  const result = { ok: true, file_id: "f", name: "a.png", media_type: "image/png", size: 3 };
  const attached = part({ tool_name: "attach_file", result });

  assert.deepEqual(attachmentOf(attached), {
    type: "file",
    file_id: "f",
    name: "a.png",
    media_type: "image/png",
  });
  assert.equal(attachmentOf({ ...attached, is_error: true }), null);
  assert.equal(attachmentOf({ ...attached, tool_name: "propose_plan" }), null);
});
