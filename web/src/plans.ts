/** Pure: the plans and questions of a chat that makes a plan. */

import { isObject } from "./sentences";
import type { ConversationState } from "./stream";
import type { ToolResultPart } from "./wire";

export interface Question {
  header: string;
  question: string;
  options: readonly { label: string; description: string }[];
}

/** The plan that a result proposes, as Markdown; null where it proposes none. */
export function readPlan(part: ToolResultPart | null): string | null {
  if (part === null || part.is_error || part.tool_name !== "propose_plan") return null;
  const { result } = part;
  return isObject(result) && typeof result.plan === "string" ? result.plan : null;
}

/** The questions that a result asks; null where it asks none. */
export function readQuestions(part: ToolResultPart | null): readonly Question[] | null {
  if (part === null || part.is_error || part.tool_name !== "ask_user_question") return null;
  const { result } = part;
  if (!isObject(result) || !Array.isArray(result.questions)) return null;
  return result.questions as Question[];
}

/** The id of a question that did not end its turn; null for one that did. */
export function questionIdOf(part: ToolResultPart | null): string | null {
  const { result } = part ?? {};
  return isObject(result) && typeof result.question_id === "string" ? result.question_id : null;
}

/** Whether a message, sent or waiting, answers the question. */
export function isAnswered(
  questionId: string,
  { messages, queue }: Pick<ConversationState, "messages" | "queue">,
): boolean {
  return [...messages, ...queue].some(({ content }) =>
    content.some((part) => part.type === "question-answer" && part.question_id === questionId),
  );
}

export interface OpenQuestion {
  id: string;
  questions: readonly Question[];
}

/** What was asked without ending the turn and nobody answered yet, oldest first. */
export function openQuestions(
  state: Pick<ConversationState, "messages" | "queue">,
): readonly OpenQuestion[] {
  const asked: OpenQuestion[] = [];
  for (const part of state.messages.flatMap(({ content }) => content)) {
    if (part.type !== "tool-result") continue;
    const [id, questions] = [questionIdOf(part), readQuestions(part)];
    if (id !== null && questions !== null) asked.push({ id, questions });
  }
  return asked.filter(({ id }) => !isAnswered(id, state));
}

/** The message that answers, one line for each question; null while one has no answer. */
export function answerText(
  questions: readonly Question[],
  answers: readonly (string | undefined)[],
): string | null {
  const given = questions.map((_, at) => answers[at]?.trim() ?? "");
  if (given.some((answer) => answer === "")) return null;
  return questions.map(({ header }, at) => `${header}: ${given[at]}`).join("\n");
}
