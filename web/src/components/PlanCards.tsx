/** What a chat that makes a plan shows of itself: the switch, the plan, the questions. */

import { useState } from "preact/hooks";
import { api } from "../api";
import type { Conversation } from "../conversation";
import { answerText, isAnswered, openQuestions } from "../plans";
import type { Question } from "../plans";
import { changeChat, conversation, openChat, planFirst, sendMessage } from "../state";
import { isBusy } from "../wire";
import { Markdown } from "./Markdown";

const CARRY_OUT = "Carry out the plan.";
const TITLE = "The agent looks around and makes a plan; nothing is changed before you have agreed";

/** Below the text field: for the open chat, or for the one that is about to begin. */
export function PlanSwitch() {
  const chat = openChat.value;
  const isOn = chat ? chat.plan_mode === "plan" : planFirst.value;
  const change = (on: boolean) => {
    if (chat) void changeChat(chat.id, { plan_mode: on ? "plan" : null });
    else planFirst.value = on;
  };
  return (
    <label class="plan-switch" title={TITLE}>
      <input
        type="checkbox"
        data-testid="plan-switch"
        checked={isOn}
        onChange={(event) => change(event.currentTarget.checked)}
      />
      Plan first
    </label>
  );
}

export function PlanCard({ plan, isCurrent }: { plan: string; isCurrent: boolean }) {
  const [problem, setProblem] = useState<string | null>(null);
  const canDecide = isCurrent && isAtRest() && openChat.value?.plan_mode === "plan";
  const carryOut = async () => {
    const chat = openChat.value;
    if (!chat) return;
    setProblem(null);
    try {
      await api.change(chat.id, { plan_mode: null });
      await sendMessage(CARRY_OUT, "queue");
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <div class="plan-card" data-testid="plan">
      <Markdown text={plan} />
      {problem && (
        <p class="note error" role="alert">
          {problem}
        </p>
      )}
      {canDecide && (
        <p class="plan-decision">
          <button
            type="button"
            class="button small primary"
            data-testid="plan-carry-out"
            onClick={() => void carryOut()}
          >
            Carry out this plan
          </button>
          <span class="hint">or write below what should be different.</span>
        </p>
      )}
    </div>
  );
}

/**
 * Where it was asked. One that ended the turn is answered here, while it is the last thing said; any other
 * in the panel, wherever the conversation has gone since.
 */
export function QuestionCard(props: {
  questions: readonly Question[];
  questionId: string | null;
  isCurrent: boolean;
}) {
  if (props.questionId === null) {
    return (
      <div class="plan-card">
        <QuestionForm
          questions={props.questions}
          questionId={null}
          canAnswer={props.isCurrent && isAtRest()}
        />
      </div>
    );
  }
  return (
    <div class="plan-card" data-testid="question-asked">
      {props.questions.map(({ question }) => (
        <p key={question} class="asked">
          {question}
        </p>
      ))}
      <p class="hint">{isOpen(props.questionId) ? "Waits for your answer, below" : "Answered"}</p>
    </div>
  );
}

/** Above the text field: what the agent asked and goes on without, the oldest first. */
export function QuestionPanel({ conversation }: { conversation: Conversation }) {
  const [first, ...others] = openQuestions(conversation.state.value);
  if (!first) return null;
  return (
    <details class="question-panel" data-testid="question-panel" open>
      <summary>
        {others.length
          ? `${others.length + 1} questions wait for your answer`
          : "A question waits for your answer"}
      </summary>
      <QuestionForm key={first.id} questions={first.questions} questionId={first.id} canAnswer />
    </details>
  );
}

function QuestionForm(props: {
  questions: readonly Question[];
  questionId: string | null;
  canAnswer: boolean;
}) {
  const [answers, setAnswers] = useState<readonly (string | undefined)[]>([]);
  const [problem, setProblem] = useState<string | null>(null);
  const { canAnswer } = props;
  const choose = (at: number, answer: string) =>
    setAnswers(props.questions.map((_, index) => (index === at ? answer : answers[index])));
  const text = answerText(props.questions, answers);
  const send = async () => {
    if (text === null) return;
    setProblem(null);
    try {
      // An agent at work hears it before its next step.
      await sendMessage(text, props.questionId === null ? "queue" : "steer", props.questionId);
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <div class="question-form" data-testid="questions">
      {props.questions.map((question, at) => (
        <fieldset key={at} disabled={!canAnswer}>
          <legend>{question.question}</legend>
          {question.options.map(({ label, description }) => (
            <label key={label}>
              <input
                type="radio"
                name={`question-${props.questionId ?? ""}-${at}`}
                checked={answers[at] === label}
                onChange={() => choose(at, label)}
              />
              <span>
                <strong>{label}</strong> {description}
              </span>
            </label>
          ))}
          <input
            type="text"
            class="field"
            aria-label={`Another answer: ${question.question}`}
            placeholder="Something else…"
            onInput={(event) => choose(at, event.currentTarget.value)}
          />
        </fieldset>
      ))}
      {problem && (
        <p class="note error" role="alert">
          {problem}
        </p>
      )}
      {canAnswer && (
        <p class="plan-decision">
          <button
            type="button"
            class="button small primary"
            data-testid="questions-answer"
            disabled={text === null}
            onClick={() => void send()}
          >
            Answer
          </button>
        </p>
      )}
    </div>
  );
}

function isOpen(questionId: string): boolean {
  const open = conversation.value;
  return open !== null && !isAnswered(questionId, open.state.value);
}

function isAtRest(): boolean {
  const open = conversation.value;
  return open !== null && !isBusy(open.state.value.status);
}
