/** Pure reducer: stream events in, what a conversation shows out. */

import { isBusy } from "./wire";
import type {
  ChatError,
  ChatStatus,
  Message,
  MessagePartEvent,
  Part,
  QueuedMessage,
  RetryPayload,
  StreamEvent,
} from "./wire";

/** The answer being written. Keyed by its episode; *seq* is the last fragment taken. */
export interface Preview {
  readonly historyVersion: number;
  readonly attempt: number;
  readonly seq: number;
  readonly parts: readonly Part[];
}

export interface ConversationState {
  readonly messages: readonly Message[];
  readonly preview: Preview | null;
  readonly queue: readonly QueuedMessage[];
  readonly status: ChatStatus | null;
  readonly error: ChatError | null;
  readonly retry: RetryPayload | null;
  /** What calls that run tell of themselves, by their ids. */
  readonly progress: Readonly<Record<string, string>>;
  /** True once a whole snapshot was received. */
  readonly loaded: boolean;
  /** Ids re-sent since the last connect; null outside of a snapshot. */
  readonly resent: ReadonlySet<number> | null;
}

/** *connected* opens a snapshot; *posted* is what the server answered to our own POST. */
export type Action =
  | StreamEvent
  | { type: "connected" }
  | { type: "posted"; messages: readonly Message[]; queued: QueuedMessage | null };

export const emptyConversation: ConversationState = {
  messages: [],
  preview: null,
  queue: [],
  status: null,
  error: null,
  retry: null,
  progress: {},
  loaded: false,
  resent: null,
};

export function reduceAll(state: ConversationState, actions: readonly Action[]): ConversationState {
  return actions.reduce(reduce, state);
}

export function reduce(state: ConversationState, action: Action): ConversationState {
  switch (action.type) {
    case "connected":
      return { ...state, preview: null, retry: null, resent: new Set() };
    case "posted":
      return action.messages.reduce(onMessage, withQueued(state, action.queued));
    case "message":
      return onMessage(state, action.message);
    case "message_part":
      return { ...state, preview: addFragment(state.preview, action), retry: null };
    case "preview_reset":
      return { ...state, preview: null, progress: {} };
    case "tool_progress":
      return { ...state, progress: { ...state.progress, [action.tool_call_id]: action.text } };
    case "history_reset":
      return { ...state, messages: [], preview: null };
    case "queue_update":
      return { ...state, queue: action.queued_messages };
    case "status":
      return onStatus(state, action.status);
    case "error":
      return { ...state, error: action.error, retry: null };
    case "retry":
      return { ...state, retry: action.retry };
    default:
      // A newer server may send kinds that this page does not know.
      return state;
  }
}

function onMessage(state: ConversationState, message: Message): ConversationState {
  const isNew = !state.messages.some((known) => known.id === message.id);
  return {
    ...state,
    messages: upsert(state.messages, message),
    // The durable message replaces its fragments; seq stays, so late duplicates are dropped.
    preview: isNew && state.preview ? { ...state.preview, parts: [] } : state.preview,
    retry: isNew ? null : state.retry,
    resent: state.resent && new Set(state.resent).add(message.id),
  };
}

function withQueued(state: ConversationState, queued: QueuedMessage | null): ConversationState {
  if (!queued || state.queue.some((known) => known.id === queued.id)) return state;
  return { ...state, queue: [...state.queue, queued] };
}

function upsert(messages: readonly Message[], message: Message): readonly Message[] {
  const last = messages[messages.length - 1];
  if (last === undefined || last.id < message.id) return [...messages, message];
  const others = messages.filter((known) => known.id !== message.id);
  const at = others.findIndex((known) => known.id > message.id);
  return at < 0 ? [...others, message] : [...others.slice(0, at), message, ...others.slice(at)];
}

/** The first status after a connect ends the snapshot: what was not sent again is gone. */
function onStatus(state: ConversationState, status: ChatStatus): ConversationState {
  const { resent } = state;
  const busy = isBusy(status);
  return {
    ...state,
    status,
    messages: resent ? state.messages.filter((message) => resent.has(message.id)) : state.messages,
    resent: null,
    loaded: true,
    preview: busy ? state.preview : null,
    retry: busy ? state.retry : null,
    error: status === "error" ? state.error : null,
  };
}

function addFragment(preview: Preview | null, event: MessagePartEvent): Preview {
  const order = preview ? compareEpisode(preview, event) : -1;
  if (preview && order > 0) return preview;
  if (preview && order === 0 && event.seq <= preview.seq) return preview;
  const parts = preview && order === 0 ? preview.parts : [];
  return {
    historyVersion: event.history_version,
    attempt: event.generation_attempt,
    seq: event.seq,
    parts: mergePart(parts, event.part),
  };
}

function compareEpisode(preview: Preview, event: MessagePartEvent): number {
  return (
    preview.historyVersion - event.history_version || preview.attempt - event.generation_attempt
  );
}

/** Appends a fragment to the part it continues, or starts a new part. */
export function mergePart(parts: readonly Part[], fragment: Part): readonly Part[] {
  if (fragment.type === "text" || fragment.type === "reasoning") {
    const last = parts[parts.length - 1];
    if (last?.type !== fragment.type) return [...parts, fragment];
    return [...parts.slice(0, -1), { ...last, text: last.text + fragment.text }];
  }
  if (fragment.type !== "tool-call" && fragment.type !== "tool-result") {
    return [...parts, fragment];
  }
  const at = parts.findIndex(
    (part) => part.type === fragment.type && part.tool_call_id === fragment.tool_call_id,
  );
  const known = parts[at];
  if (known === undefined) return [...parts, fragment];
  return parts.map((part, index) => (index === at ? mergeTool(known, fragment) : part));
}

function mergeTool(known: Part, fragment: Part): Part {
  if (known.type !== "tool-call" || fragment.type !== "tool-call") return fragment;
  return {
    ...known,
    ...fragment,
    args: fragment.args ?? known.args ?? null,
    args_delta: (known.args_delta ?? "") + (fragment.args_delta ?? ""),
  };
}
