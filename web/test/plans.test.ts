import assert from "node:assert/strict";
import { test } from "node:test";
import {
  answerText,
  isAnswered,
  openQuestions,
  questionIdOf,
  readPlan,
  readQuestions,
} from "../src/plans";
import type { Message, QueuedMessage, ToolResultPart } from "../src/wire";

const part = (tool_name: string, result: unknown, is_error = false): ToolResultPart => ({
  type: "tool-result",
  tool_call_id: "a",
  tool_name,
  result,
  is_error,
});
const questions = [
  { header: "Colour", question: "Which?", options: [] },
  { header: "Size", question: "How large?", options: [] },
];

test("a plan is read from its result only", () => {
  assert.equal(readPlan(part("propose_plan", { plan: "# P" })), "# P");
  assert.equal(readPlan(part("propose_plan", { error: "none" }, true)), null);
  assert.equal(readPlan(part("execute", { plan: "# P" })), null);
  assert.equal(readPlan(null), null);
});

test("questions are read from their result only", () => {
  assert.deepEqual(readQuestions(part("ask_user_question", { questions })), questions);
  assert.equal(readQuestions(part("ask_user_question", { error: "x" }, true)), null);
});

test("a question with an id is open until a message names it, sent or waiting", () => {
  const message = (question_id: string) =>
    ({ content: [{ type: "question-answer", question_id, text: "Red" }] }) as unknown as Message &
      QueuedMessage;

  assert.equal(questionIdOf(part("ask_user_question", { questions, question_id: "q" })), "q");
  assert.equal(questionIdOf(part("ask_user_question", { questions })), null);
  assert.equal(isAnswered("q", { messages: [message("other")], queue: [] }), false);
  assert.equal(isAnswered("q", { messages: [message("q")], queue: [] }), true);
  assert.equal(isAnswered("q", { messages: [], queue: [message("q")] }), true);
});

test("open questions are those without an answer, oldest first", () => {
  const message = (part: unknown) => ({ content: [part] }) as unknown as Message & QueuedMessage;
  const asked = (question_id?: string) =>
    message(part("ask_user_question", { questions, question_id }));
  const answer = message({ type: "question-answer", question_id: "b", text: "Red" });
  const messages = [asked("a"), asked(), asked("b"), asked("c"), message({ type: "text" })];
  const ids = (state: { messages: Message[]; queue: QueuedMessage[] }) =>
    openQuestions(state).map(({ id }) => id);

  assert.deepEqual(ids({ messages, queue: [] }), ["a", "b", "c"]);
  assert.deepEqual(ids({ messages: [...messages, answer], queue: [] }), ["a", "c"]);
  assert.deepEqual(ids({ messages, queue: [answer] }), ["a", "c"]);
});

test("an answer needs every question", () => {
  assert.equal(answerText(questions, ["Red"]), null);
  assert.equal(answerText(questions, ["Red", " "]), null);
  assert.equal(answerText(questions, ["Red", "large"]), "Colour: Red\nSize: large");
});
