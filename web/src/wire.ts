/** Chats, messages, parts and stream events, as the server sends them (chatd/wire.py). */

export type Role = "system" | "user" | "assistant" | "tool";
export type Visibility = "user" | "model" | "both";
export type ChatStatus = "waiting" | "running" | "interrupting" | "requires_action" | "error";
export type ChatMode = "computer_use" | "explore";
export type JsonObject = Record<string, unknown>;

export interface McpHealth {
  state: "connecting" | "ready" | "waiting" | "failed" | "disabled" | "closed";
  tools: readonly string[];
  rejected: readonly { tool: string; reason: string }[];
  last_error?: string;
  warnings?: readonly string[];
}

export interface ChatMcpServer {
  name: string;
  origin: "workspace" | "deployment";
  id?: string;
  display_name: string;
  description: string;
  availability?: "force_on" | "default_on" | "default_off";
  is_on: boolean;
  health: McpHealth;
}

export interface ChatMcp {
  workspace: "none" | "away" | "connected";
  servers: readonly ChatMcpServer[];
  /** Tools that found no room in a request. */
  left_out?: readonly string[];
}

export interface TextPart {
  type: "text";
  text: string;
}

export interface ReasoningPart {
  type: "reasoning";
  text: string;
  created_at?: string | null;
  completed_at?: string | null;
}

export interface ToolCallPart {
  type: "tool-call";
  tool_call_id: string;
  tool_name: string;
  args?: JsonObject | null;
  args_delta?: string | null;
  invalid?: string | null;
  needs_approval?: readonly string[] | null;
  approved?: boolean | null;
  provider_executed?: boolean;
}

export interface ToolResultPart {
  type: "tool-result";
  tool_call_id: string;
  tool_name: string;
  result?: unknown;
  is_error?: boolean;
  is_media?: boolean;
  provider_executed?: boolean;
}

/** Where the model says that it read something. */
export interface SourcePart {
  type: "source";
  url: string;
  title?: string | null;
}

export interface FilePart {
  type: "file";
  media_type: string;
  file_id?: string | null;
  name?: string | null;
  data?: string | null;
}

/** What a person answers to a question that the agent asked while it went on. */
export interface QuestionAnswerPart {
  type: "question-answer";
  question_id: string;
  text: string;
}

export type Part =
  | TextPart
  | ReasoningPart
  | ToolCallPart
  | ToolResultPart
  | FilePart
  | SourcePart
  | QuestionAnswerPart;

export type InputPart = { type: "text"; text: string } | QuestionAnswerPart;

export interface ModelConfig {
  id: string;
  provider: "anthropic" | "google" | "openai" | "openai-compat";
  model: string;
  display_name: string;
  is_default: boolean;
  rehearsal: boolean;
  /** What may be chosen, the least first; none: this model offers no choice. */
  reasoning_efforts: readonly ReasoningEffort[];
  default_reasoning_effort: ReasoningEffort | null;
}

/** How hard a model thinks before it answers. */
export type ReasoningEffort = "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max";

/** Why a model call failed. */
export type FaultKind =
  | "generic"
  | "overloaded"
  | "rate_limit"
  | "timeout"
  | "startup_timeout"
  | "stream_silence_timeout"
  | "auth"
  | "config"
  | "usage_limit"
  | "missing_key"
  | "provider_disabled"
  | "content_filter";

export interface ChatError {
  message: string;
  detail?: string | null;
  kind?: FaultKind;
  provider?: string | null;
  retryable?: boolean;
  status_code?: number | null;
}

export interface ContextResource {
  source: string;
  kind: string;
  status: string;
  size_bytes: number;
  error?: string | null;
  description?: string | null;
  skill_name?: string | null;
}

export interface ChatContext {
  pinned: boolean;
  dirty: boolean;
  dirty_since?: string | null;
  error?: string | null;
  resources?: ContextResource[] | null;
}

export interface ChangedResource {
  before: ContextResource;
  after: ContextResource;
  diff: string;
  truncated?: boolean;
}

export interface ContextDiff {
  added: ContextResource[];
  removed: ContextResource[];
  modified: ChangedResource[];
}

export interface Chat {
  id: string;
  owner_id: string;
  title: string;
  status: ChatStatus;
  mode?: ChatMode | null;
  /** plan: its agent makes a plan, and only that. */
  plan_mode?: "plan" | null;
  parent_chat_id?: string | null;
  root_chat_id: string;
  last_model_config_id: string;
  last_reasoning_effort?: ReasoningEffort | null;
  agent_id?: string | null;
  last_error?: ChatError | null;
  archived: boolean;
  /** Position among the pinned chats, from 1; 0: not pinned. */
  pin_order?: number;
  has_unread?: boolean;
  context?: ChatContext | null;
  created_at: string;
  updated_at: string;
  children: Chat[];
}

export interface Message {
  id: number;
  chat_id: string;
  role: Role;
  content: Part[];
  visibility: Visibility;
  created_at: string;
  model_config_id?: string | null;
}

/** What a message does to a chat at work: wait for the turn, stop it, or be in its next model call. */
export type BusyBehavior = "queue" | "interrupt" | "steer";

export interface QueuedMessage {
  id: number;
  steer?: boolean;
  chat_id: string;
  content: Part[];
  created_at: string;
}

/** What a call that runs tells of itself, in place of what it told before. */
export interface ToolProgressEvent {
  type: "tool_progress";
  tool_call_id: string;
  text: string;
  seq: number;
}

export interface RetryPayload {
  attempt: number;
  delay_ms: number;
  error: string;
  kind: FaultKind;
  provider?: string | null;
  status_code?: number | null;
  retrying_at: string;
}

export interface MessagePartEvent {
  type: "message_part";
  chat_id: string;
  role: Role;
  part: Part;
  history_version: number;
  generation_attempt: number;
  seq: number;
}

export type StreamEvent =
  | MessagePartEvent
  | { type: "message"; chat_id: string; message: Message }
  | { type: "status"; chat_id: string; status: ChatStatus }
  | { type: "error"; chat_id: string; error: ChatError }
  | { type: "queue_update"; chat_id: string; queued_messages: QueuedMessage[] }
  | { type: "retry"; chat_id: string; retry: RetryPayload }
  | ToolProgressEvent
  | { type: "preview_reset"; chat_id: string }
  | { type: "history_reset"; chat_id: string };

export interface WatchEvent {
  type: "chat";
  chat: Chat;
}

export interface Me {
  user: { id: string; name: string; is_admin: boolean };
  /** Whether it is a session that asks, which can be ended. */
  session: boolean;
  models: ModelConfig[];
  default_model_config_id: string | null;
  /** That of the person's own choice of a default model. */
  default_reasoning_effort: ReasoningEffort | null;
  rehearsal: boolean;
  version: string;
}

export interface Posted {
  message?: Message | null;
  messages?: Message[];
  queued_message?: QueuedMessage | null;
  queued: boolean;
  warnings?: readonly string[];
}

export interface DesktopStatus {
  name: string;
  state: "stopped" | "starting" | "running" | "failed";
  display?: string | null;
  backend: string;
  geometry: string;
  viewers: number;
  /** The person who has control, and that person's page; null is the agent. */
  control?: string | null;
  control_seat?: string | null;
  /** Size of a text on its clipboard that was asked for and was too long; 0: none. */
  clipboard_withheld_bytes?: number;
  error?: string | null;
}

export interface ControlState {
  epoch: number;
  seat: string | null;
  name: string | null;
  ends_in_s: number | null;
}

/** A link by which anybody may watch; *url* is told once, when it is made. */
export interface Share {
  id: string;
  url?: string;
  created_at: string;
  expires_at: string;
  views: number;
  last_viewed_at: string | null;
}

/** Whether a turn is under way, so that it can be stopped and new messages queue up. */
export function isBusy(status: ChatStatus | null): boolean {
  return status === "running" || status === "interrupting";
}
