import assert from "node:assert/strict";
import { test } from "node:test";
import { arrived, outgoing, rejoin, withoutSent } from "../src/outgoing";
import { emptyConversation } from "../src/stream";
import type { ConversationState } from "../src/stream";
import type { Message, QueuedMessage } from "../src/wire";

const base = { chat_id: "c", created_at: "2026-01-01T00:00:00Z" };
const queued = (id: number, text: string): QueuedMessage => ({
  ...base,
  id,
  content: [{ type: "text", text }],
});
const said = (id: number, text: string, role: Message["role"] = "user"): Message => ({
  ...queued(id, text),
  role,
  visibility: "both",
});
const state = (fields: Partial<ConversationState>) => ({ ...emptyConversation, ...fields });

test("a message has arrived once a newer one carries its text, said or queued", () => {
  const before = state({ messages: [said(1, "go")] });
  const sent = outgoing("go", before);

  assert.equal(arrived(sent, before), false);
  assert.equal(arrived(sent, state({ messages: [said(1, "go"), said(2, "go")] })), true);
  assert.equal(arrived(sent, state({ messages: before.messages, queue: [queued(7, "go")] })), true);
});

test("what the assistant or another text says is no arrival", () => {
  const sent = outgoing("go", emptyConversation);

  assert.equal(arrived(sent, state({ messages: [said(2, "go", "assistant")] })), false);
  assert.equal(arrived(sent, state({ messages: [said(2, "stop")] })), false);
});

test("the same text waiting in the queue is not mistaken for the message when its turn comes", () => {
  const sent = outgoing("go", state({ queue: [queued(7, "go")] }));

  assert.equal(arrived(sent, state({ messages: [said(2, "go")] })), false);
  assert.equal(arrived(sent, state({ queue: [queued(7, "go"), queued(8, "go")] })), true);
});

test("unsent text goes above what was typed meanwhile, and can be taken away again", () => {
  assert.equal(rejoin("a", ""), "a");
  assert.equal(rejoin("a", "b"), "a\nb");
  assert.equal(rejoin(null, "b"), "b");
  assert.equal(withoutSent("a", "a"), "");
  assert.equal(withoutSent("a\nb", "a"), "b");
  assert.equal(withoutSent("ab", "a"), null);
});
