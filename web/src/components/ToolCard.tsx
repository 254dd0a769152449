/** One tool call: what it does, how it went, and on demand everything about it. */

import { useMemo } from "preact/hooks";
import { fileUrl } from "../api";
import { questionIdOf, readPlan, readQuestions } from "../plans";
import { attachmentOf, childChatId, filmOf, pretty, readResult } from "../results";
import { callArguments, computerActions, describeCall } from "../sentences";
import type { ToolBlock, ToolState } from "../turns";
import { ChildChat } from "./ChildChat";
import { FileView } from "./FileView";
import { Icon } from "./icons";
import type { IconName } from "./icons";
import { PlanCard, QuestionCard } from "./PlanCards";
import { Screenshot } from "./Screenshot";

const STATE_WORDS: Record<ToolState, string> = {
  running: "running",
  ok: "ok",
  error: "error",
  stopped: "stopped",
};

export function ToolCard({ block, isCurrent }: { block: ToolBlock; isCurrent: boolean }) {
  const { call, result, state } = block;
  const sentence = useMemo(() => describeCall(call), [call]);
  const readable = useMemo(() => (result ? readResult(result) : null), [result]);
  const childId = childChatId(call, result);
  const plan = readPlan(result);
  const questions = readQuestions(result);
  const attachment = attachmentOf(result);
  const { film, thumbnail } = filmOf(result);
  const errorText = call.invalid ?? (state === "error" ? readable?.text : null);
  return (
    <section class="tool" data-testid="tool-card" data-tool={call.tool_name} data-state={state}>
      <details>
        <summary>
          <Icon name={iconOf(call.tool_name)} />
          <span class="tool-sentence">{sentence}</span>
          <code class="tool-name">{call.tool_name}</code>
          <span class="tool-state">{STATE_WORDS[state]}</span>
          <Icon name="chevron" />
        </summary>
        <ToolDetails block={block} />
      </details>
      {block.progress && (
        <pre class="tool-progress" data-testid="tool-progress">
          {lastLines(block.progress)}
        </pre>
      )}
      {errorText && <p class="tool-error">{errorText}</p>}
      {readable?.imageFileId && <Screenshot fileId={readable.imageFileId} label={sentence} />}
      {thumbnail && <Screenshot fileId={thumbnail} label={`The end of: ${sentence}`} />}
      {film && (
        <a class="file" href={fileUrl(film)} target="_blank" rel="noopener">
          Watch the recording
        </a>
      )}
      {attachment && <FileView file={attachment} />}
      {plan && <PlanCard plan={plan} isCurrent={isCurrent} />}
      {questions && (
        <QuestionCard
          questions={questions}
          questionId={questionIdOf(result)}
          isCurrent={isCurrent}
        />
      )}
      {childId && <ChildChat chatId={childId} showSteps={isCurrent} />}
    </section>
  );
}

/** The end of what a call has printed: enough to see that it goes on, and how. */
const PROGRESS_LINES = 6;

function lastLines(text: string): string {
  return text.trimEnd().split("\n").slice(-PROGRESS_LINES).join("\n");
}

function ToolDetails({ block: { call, result } }: { block: ToolBlock }) {
  const args = callArguments(call);
  const actions = call.tool_name === "computer" ? computerActions(args) : [];
  const text = result ? readResult(result).text : "";
  return (
    <div class="tool-details">
      {actions.length > 1 && (
        <ol>
          {actions.map((action, index) => (
            <li key={index}>{action}</li>
          ))}
        </ol>
      )}
      <h3>Arguments</h3>
      <pre tabIndex={0}>{call.args ? pretty(args) : call.args_delta || "{}"}</pre>
      {text !== "" && (
        <>
          <h3>Result</h3>
          <pre tabIndex={0}>{text}</pre>
        </>
      )}
    </div>
  );
}

function iconOf(name: string): IconName {
  if (name === "computer") return "pointer";
  if (name === "execute" || name.startsWith("process_")) return "terminal";
  if (/file/.test(name)) return "file";
  if (/agent/.test(name)) return "agent";
  if (/search/.test(name)) return "search";
  return "tool";
}
