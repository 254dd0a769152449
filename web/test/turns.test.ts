import assert from "node:assert/strict";
import { test } from "node:test";
import { emptyConversation } from "../src/stream";
import { buildTurns, toolBlocks } from "../src/turns";
import type { ChatStatus, Message, Part } from "../src/wire";

function message(id: number, role: Message["role"], ...content: Part[]): Message {
  return {
    id,
    chat_id: "c",
    role,
    content,
    visibility: "both",
    created_at: "2026-01-01T00:00:00Z",
  };
}

const text = (value: string): Part => ({ type: "text", text: value });
const call: Part = { type: "tool-call", tool_call_id: "t", tool_name: "execute", args: {} };
const result = (isError = false): Part => ({
  type: "tool-result",
  tool_call_id: "t",
  tool_name: "execute",
  result: { output: "x" },
  is_error: isError,
});

const turns = (status: ChatStatus, ...messages: Message[]) =>
  buildTurns({ ...emptyConversation, status, messages });
const states = (status: ChatStatus, ...messages: Message[]) =>
  toolBlocks(turns(status, ...messages)).map(({ state }) => state);

test("assistant and tool messages between two user messages are one turn", () => {
  const built = turns(
    "waiting",
    message(1, "user", text("do")),
    message(2, "assistant", call),
    message(3, "tool", result()),
    message(4, "assistant", text("done")),
    message(5, "user", text("thanks")),
  );

  assert.deepEqual(
    built.map((turn) => [turn.role, turn.blocks.length]),
    [
      ["user", 1],
      ["assistant", 2],
      ["user", 1],
    ],
  );
});

test("thoughts tell how long they took, where it is known and worth telling", () => {
  const thought = (createdAt: string | null, completedAt: string | null): Part => ({
    type: "reasoning",
    text: "Hm.",
    created_at: createdAt,
    completed_at: completedAt,
  });
  const seconds = (part: Part) =>
    turns("waiting", message(1, "assistant", part))[0]?.blocks.map((block) =>
      block.kind === "reasoning" ? block.seconds : undefined,
    );

  assert.deepEqual(seconds(thought("2026-01-01T00:00:00Z", "2026-01-01T00:01:05.4Z")), [65]);
  assert.deepEqual(seconds(thought("2026-01-01T00:00:00Z", "2026-01-01T00:00:00.3Z")), [null]);
  assert.deepEqual(seconds(thought(null, null)), [null]);
});

test("a call without a result runs while the chat runs and is stopped afterwards", () => {
  assert.deepEqual(states("running", message(1, "assistant", call)), ["running"]);
  assert.deepEqual(states("waiting", message(1, "assistant", call)), ["stopped"]);
});

test("a call that runs tells how it goes, and one that has ended does not", () => {
  const progress = { t: "2 of 3", other: "x" };
  const messages = [message(1, "assistant", call)];
  const told = (more: Message[]) =>
    toolBlocks(
      buildTurns({
        ...emptyConversation,
        status: "running",
        messages: [...messages, ...more],
        progress,
      }),
    ).map((block) => block.progress);

  assert.deepEqual(told([]), ["2 of 3"]);
  assert.deepEqual(told([message(2, "tool", result())]), [""]);
});

test("a result decides whether its call went well", () => {
  const asked = message(1, "assistant", call);

  assert.deepEqual(states("running", asked, message(2, "tool", result())), ["ok"]);
  assert.deepEqual(states("running", asked, message(2, "tool", result(true))), ["error"]);
});

test("a call that was answered by a person's stop is stopped, not failed", () => {
  const answer: Part = {
    type: "tool-result",
    tool_call_id: "t",
    tool_name: "execute",
    result: { error: "The user stopped the turn before this call was answered." },
    is_error: true,
  };

  assert.deepEqual(states("waiting", message(1, "assistant", call), message(2, "tool", answer)), [
    "stopped",
  ]);
});

test("what people alone are told of an answer stands behind it, by itself", () => {
  const notice: Message = { ...message(3, "assistant", text("Cut off.")), visibility: "user" };
  const built = turns(
    "waiting",
    message(1, "user", text("do")),
    message(2, "assistant", text("half")),
    notice,
  );

  assert.deepEqual(
    built[1]?.blocks.map((block) => (block.kind === "text" ? block.text : block.kind)),
    ["half", "Cut off."],
  );
});

test("system messages and those for the model only are not shown", () => {
  const hidden: Message = { ...message(2, "user", text("x")), visibility: "model" };

  assert.deepEqual(turns("waiting", message(1, "system", text("x")), hidden), []);
});

test("only the last part of a preview carries the caret", () => {
  const preview = { historyVersion: 1, attempt: 1, seq: 2, parts: [text("a"), call, text("b")] };
  const [turn] = buildTurns({ ...emptyConversation, status: "running", preview });

  assert.deepEqual(
    turn?.blocks.map((block) => "streaming" in block && block.streaming),
    [false, false, true],
  );
});

test("what an answer cites stands once behind it, and its text stays whole", () => {
  const source = (url: string, title: string | null = null): Part => ({
    type: "source",
    url,
    title,
  });
  const [, turn] = turns(
    "waiting",
    message(1, "user", text("?")),
    message(
      2,
      "assistant",
      text("Born on "),
      text("30 April"),
      source("https://a.example/x", "A"),
      text("."),
      source("https://a.example/x", "A"),
      source("javascript:alert(1)"),
    ),
  );
  assert.deepEqual(
    turn?.blocks.map((block) => block.kind),
    ["text", "sources"],
  );
  const [answer, sources] = turn?.blocks ?? [];
  assert.equal(answer?.kind === "text" && answer.text, "Born on 30 April.");
  assert.deepEqual(sources?.kind === "sources" && sources.sources.map((one) => one.url), [
    "https://a.example/x",
  ]);
});
