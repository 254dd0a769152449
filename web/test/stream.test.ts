import assert from "node:assert/strict";
import { test } from "node:test";
import { emptyConversation, mergePart, reduce, reduceAll } from "../src/stream";
import type { Action } from "../src/stream";
import type { ChatStatus, Message, Part } from "../src/wire";

const CHAT = "c1";

function message(id: number, text = `m${id}`, role: Message["role"] = "assistant"): Message {
  const content: Part[] = [{ type: "text", text }];
  return {
    id,
    chat_id: CHAT,
    role,
    content,
    visibility: "both",
    created_at: "2026-01-01T00:00:00Z",
  };
}

const stored = (id: number, text?: string): Action => ({
  type: "message",
  chat_id: CHAT,
  message: message(id, text),
});

const status = (value: ChatStatus): Action => ({ type: "status", chat_id: CHAT, status: value });

function fragment(text: string, seq: number, version = 1, attempt = 1): Action {
  return {
    type: "message_part",
    chat_id: CHAT,
    role: "assistant",
    part: { type: "text", text },
    history_version: version,
    generation_attempt: attempt,
    seq,
  };
}

const run = (...actions: Action[]) => reduceAll(emptyConversation, actions);
const ids = (state: ReturnType<typeof run>) => state.messages.map(({ id }) => id);
const previewText = (state: ReturnType<typeof run>) =>
  (state.preview?.parts ?? []).map((part) => (part.type === "text" ? part.text : "?")).join("|");

test("messages are ordered by id, whatever order they arrive in", () => {
  assert.deepEqual(ids(run(stored(1), stored(5), stored(3))), [1, 3, 5]);
});

test("a message that arrives again replaces the former one", () => {
  const state = run(stored(1, "old"), stored(2), stored(1, "new"));

  assert.deepEqual(ids(state), [1, 2]);
  assert.deepEqual(state.messages[0]?.content, [{ type: "text", text: "new" }]);
});

test("fragments of one episode join into one text", () => {
  assert.equal(previewText(run(status("running"), fragment("Hel", 1), fragment("lo", 2))), "Hello");
});

test("a fragment that was already taken is dropped", () => {
  assert.equal(previewText(run(fragment("a", 1), fragment("b", 2), fragment("b", 2))), "ab");
});

test("a later episode starts afresh and an earlier one is ignored", () => {
  assert.equal(previewText(run(fragment("a", 1), fragment("b", 1, 1, 2))), "b");
  assert.equal(previewText(run(fragment("b", 1, 2, 1), fragment("a", 7, 1, 3))), "b");
});

test("a new message clears the preview and late duplicates do not bring it back", () => {
  const state = run(status("running"), fragment("a", 1), fragment("b", 2), stored(1, "ab"));

  assert.equal(previewText(state), "");
  assert.equal(previewText(reduce(state, fragment("b", 2))), "");
  assert.equal(previewText(reduce(state, fragment("c", 1, 2))), "c");
});

test("a known message that is sent again leaves the preview alone", () => {
  assert.equal(previewText(run(stored(1), fragment("a", 1), stored(1))), "a");
});

test("preview_reset forgets fragments, so that they may be sent again", () => {
  const reset: Action = { type: "preview_reset", chat_id: CHAT };

  assert.equal(previewText(run(fragment("a", 1), reset)), "");
  assert.equal(previewText(run(fragment("a", 1), reset, fragment("a", 1))), "a");
});

test("a connect clears the preview but keeps messages on screen until the snapshot is whole", () => {
  const before = run(stored(1), stored(2), status("running"), fragment("a", 1));
  const connected = reduce(before, { type: "connected" });

  assert.equal(previewText(connected), "");
  assert.deepEqual(ids(connected), [1, 2]);
  assert.deepEqual(ids(reduceAll(connected, [stored(1), stored(3), status("waiting")])), [1, 3]);
});

test("history_reset forgets every message", () => {
  assert.deepEqual(ids(run(stored(1), { type: "history_reset", chat_id: CHAT }, stored(4))), [4]);
});

test("the queue is always the last one sent", () => {
  const queued = { id: 9, chat_id: CHAT, content: [], created_at: "2026-01-01T00:00:00Z" };
  const update = (queue: (typeof queued)[]): Action => ({
    type: "queue_update",
    chat_id: CHAT,
    queued_messages: queue,
  });

  assert.equal(run(update([queued])).queue.length, 1);
  assert.equal(run(update([queued]), update([])).queue.length, 0);
});

test("a message that the server answered to have queued is shown once", () => {
  const queued = { id: 9, chat_id: CHAT, content: [], created_at: "2026-01-01T00:00:00Z" };
  const posted: Action = { type: "posted", messages: [], queued };

  assert.deepEqual(run(posted, posted).queue, [queued]);
});

test("an error stays while the chat is in error and goes when it runs again", () => {
  const failed: Action = { type: "error", chat_id: CHAT, error: { message: "no" } };

  assert.equal(run(status("error"), failed).error?.message, "no");
  assert.equal(run(status("error"), failed, status("running")).error, null);
});

test("a retry is shown until the next fragment", () => {
  const retry: Action = {
    type: "retry",
    chat_id: CHAT,
    retry: { attempt: 1, delay_ms: 500, error: "busy", kind: "overloaded", retrying_at: "" },
  };

  assert.equal(run(status("running"), retry).retry?.error, "busy");
  assert.equal(run(status("running"), retry, fragment("a", 1)).retry, null);
});

test("an event of an unknown kind changes nothing", () => {
  const state = run(stored(1));

  assert.equal(reduce(state, { type: "new_kind" } as unknown as Action), state);
});

test("a tool call grows by its id and keeps the whole arguments when they come", () => {
  const call = { type: "tool-call", tool_call_id: "t", tool_name: "execute" } as const;
  const grown = [
    { ...call, args_delta: '{"command":' },
    { ...call, args_delta: '"ls"}' },
    { ...call, args: { command: "ls" } },
  ].reduce<readonly Part[]>(mergePart, []);

  assert.deepEqual(grown, [{ ...call, args: { command: "ls" }, args_delta: '{"command":"ls"}' }]);
});

test("the newest word of each call is kept until the next answer begins", () => {
  const word = (tool_call_id: string, text: string, seq: number): Action => ({
    type: "tool_progress",
    tool_call_id,
    text,
    seq,
  });
  const told = run(word("a", "1", 1), word("b", "x", 2), word("a", "2", 3));

  assert.deepEqual(told.progress, { a: "2", b: "x" });
  assert.deepEqual(reduce(told, { type: "preview_reset", chat_id: "c" }).progress, {});
});
