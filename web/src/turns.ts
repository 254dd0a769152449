/** Pure: a conversation's messages, arranged as the turns and blocks that the page draws. */

import { readResult } from "./results";
import type { ConversationState } from "./stream";
import { isBusy } from "./wire";
import type {
  FilePart,
  Message,
  Part,
  ReasoningPart,
  SourcePart,
  ToolCallPart,
  ToolResultPart,
} from "./wire";

export type ToolState = "running" | "ok" | "error" | "stopped";

export interface ToolBlock {
  kind: "tool";
  key: string;
  call: ToolCallPart;
  result: ToolResultPart | null;
  state: ToolState;
  /** What it tells of itself while it runs; empty before it has told anything. */
  progress: string;
}

export type Block =
  | { kind: "text"; key: string; text: string; streaming: boolean }
  | { kind: "reasoning"; key: string; text: string; streaming: boolean; seconds: number | null }
  | { kind: "file"; key: string; file: FilePart }
  | { kind: "sources"; key: string; sources: readonly SourcePart[] }
  | ToolBlock;

export interface Turn {
  role: "user" | "assistant";
  key: string;
  createdAt: string | null;
  /** Of a message that a person sent; absent while it is not stored. */
  messageId: number | null;
  blocks: Block[];
}

// How chatd answers the calls of a turn that a person stopped.
const STOPPED = /^The user stopped the turn\b/;

interface Source {
  role: Message["role"];
  key: string;
  createdAt: string | null;
  messageId: number | null;
  parts: readonly Part[];
  streaming: boolean;
}

/** User messages stand alone; what assistant and tools say in between is one turn. */
export function buildTurns(state: ConversationState): Turn[] {
  const sources = collectSources(state);
  const results = indexResults(sources);
  const calls = new Set<string>();
  const turns: Turn[] = [];
  for (const source of sources) {
    const role = source.role === "user" ? "user" : "assistant";
    let turn = turns[turns.length - 1];
    if (role === "user" || turn?.role !== "assistant") {
      // An answer is keyed by what it answers, so that it stays itself when its preview becomes durable.
      const key = role === "user" ? source.key : `after-${turn?.key ?? ""}`;
      const { createdAt, messageId } = source;
      turn = { role, key, createdAt, messageId: role === "user" ? messageId : null, blocks: [] };
      turns.push(turn);
    }
    turn.blocks.push(...blocksOf(source, results, calls, state));
  }
  return turns.filter((turn) => turn.blocks.length > 0);
}

function collectSources(state: ConversationState): Source[] {
  const sources: Source[] = state.messages
    .filter((message) => message.role !== "system" && message.visibility !== "model")
    .map((message) => ({
      role: message.role,
      key: `m${message.id}`,
      createdAt: message.created_at,
      messageId: message.id,
      parts: message.content,
      streaming: false,
    }));
  if (state.preview && state.preview.parts.length > 0) {
    const { parts } = state.preview;
    sources.push({
      role: "assistant",
      key: "preview",
      createdAt: null,
      messageId: null,
      parts,
      streaming: true,
    });
  }
  return sources;
}

function indexResults(sources: readonly Source[]): Map<string, ToolResultPart> {
  const results = new Map<string, ToolResultPart>();
  for (const { parts } of sources) {
    for (const part of parts) {
      if (part.type === "tool-result") results.set(part.tool_call_id, part);
    }
  }
  return results;
}

function blocksOf(
  source: Source,
  results: ReadonlyMap<string, ToolResultPart>,
  calls: Set<string>,
  { status, progress: told }: Pick<ConversationState, "status" | "progress">,
): Block[] {
  const busy = isBusy(status);
  const blocks: Block[] = [];
  const cited = new Map<string, SourcePart>();
  source.parts.forEach((part, index) => {
    const key = `${source.key}.${index}`;
    const isLast = index === source.parts.length - 1;
    if (part.type === "text" || part.type === "reasoning") {
      if (part.text.trim() === "") return;
      const before = blocks[blocks.length - 1];
      if (part.type === "text" && before?.kind === "text") {
        // A vendor cuts a text where it cites something.
        before.text += part.text;
        before.streaming = source.streaming && isLast;
        return;
      }
      const block = { key, text: part.text, streaming: source.streaming && isLast };
      if (part.type === "text") blocks.push({ kind: "text", ...block });
      else blocks.push({ kind: "reasoning", ...block, seconds: thoughtSeconds(part) });
    } else if (part.type === "source") {
      if (isLink(part.url)) cited.set(part.url, part);
    } else if (part.type === "question-answer") {
      blocks.push({ kind: "text", key, text: part.text, streaming: false });
    } else if (part.type === "file") {
      blocks.push({ kind: "file", key, file: part });
    } else if (!calls.has(part.tool_call_id)) {
      // Keyed by the call, so that an opened card stays open when its preview becomes durable.
      calls.add(part.tool_call_id);
      const result = results.get(part.tool_call_id) ?? null;
      const call: ToolCallPart = part.type === "tool-call" ? part : { ...part, type: "tool-call" };
      const state = toolState(call, result, busy);
      const progress = state === "running" ? (told[call.tool_call_id] ?? "") : "";
      blocks.push({ kind: "tool", key: `t${part.tool_call_id}`, call, result, state, progress });
    }
  });
  if (cited.size > 0) {
    blocks.push({ kind: "sources", key: `${source.key}.sources`, sources: [...cited.values()] });
  }
  return blocks;
}

/** Whether an address that a model gave may be a link. */
export const isLink = (url: string) => /^https?:\/\//i.test(url);

/** Whole seconds from the first word to the last; null where nobody told, or it took no time. */
function thoughtSeconds({ created_at, completed_at }: ReasoningPart): number | null {
  if (!created_at || !completed_at) return null;
  const seconds = Math.round((Date.parse(completed_at) - Date.parse(created_at)) / 1000);
  return seconds > 0 ? seconds : null;
}

function toolState(call: ToolCallPart, result: ToolResultPart | null, busy: boolean): ToolState {
  if (result?.is_error) return STOPPED.test(readResult(result).text) ? "stopped" : "error";
  if (result) return "ok";
  if (call.invalid) return "error";
  return busy ? "running" : "stopped";
}

/** The tool blocks of a conversation, oldest first. */
export function toolBlocks(turns: readonly Turn[]): ToolBlock[] {
  return turns.flatMap((turn) =>
    turn.blocks.filter((block): block is ToolBlock => block.kind === "tool"),
  );
}
