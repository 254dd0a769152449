/** Chats, messages, parts and stream events, as the server sends them (chatd/wire.py). */

export type Role = "system" | "user" | "assistant" | "tool";
export type Visibility = "user" | "model" | "both";
export type ChatStatus = "waiting" | "running" | "interrupting" | "requires_action" | "error";
export type ChatMode = "computer_use" | "explore";
export type JsonObject = Record<string, unknown>;

export interface TextPart {
  type: "text";
  text: string;
}

export interface ReasoningPart {
  type: "reasoning";
  text: string;
}

export interface ToolCallPart {
  type: "tool-call";
  tool_call_id: string;
  tool_name: string;
  args?: JsonObject | null;
  args_delta?: string | null;
  invalid?: string | null;
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

export interface FilePart {
  type: "file";
  media_type: string;
  file_id?: string | null;
  name?: string | null;
  data?: string | null;
}

export type Part = TextPart | ReasoningPart | ToolCallPart | ToolResultPart | FilePart;

export interface InputPart {
  type: "text";
  text: string;
}

export interface ModelConfig {
  id: string;
  provider: "anthropic" | "openai" | "openai-compat";
  model: string;
  display_name: string;
  is_default: boolean;
  rehearsal: boolean;
}

export interface ChatError {
  message: string;
  detail?: string | null;
  kind?: string;
  provider?: string | null;
  retryable?: boolean;
  status_code?: number | null;
}

export interface Chat {
  id: string;
  owner_id: string;
  title: string;
  status: ChatStatus;
  mode?: ChatMode | null;
  parent_chat_id?: string | null;
  root_chat_id: string;
  last_model_config_id: string;
  agent_id?: string | null;
  last_error?: ChatError | null;
  archived: boolean;
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

export interface QueuedMessage {
  id: number;
  chat_id: string;
  content: Part[];
  created_at: string;
}

export interface RetryPayload {
  attempt: number;
  delay_ms: number;
  error: string;
  kind: string;
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
  | { type: "preview_reset"; chat_id: string }
  | { type: "history_reset"; chat_id: string };

export interface WatchEvent {
  type: "chat";
  chat: Chat;
}

export interface Me {
  user: { id: string; name: string };
  models: ModelConfig[];
  default_model_config_id: string | null;
  rehearsal: boolean;
  version: string;
}

export interface Posted {
  message?: Message | null;
  messages?: Message[];
  queued_message?: QueuedMessage | null;
  queued: boolean;
}

export interface DesktopStatus {
  name: string;
  state: "stopped" | "starting" | "running" | "failed";
  display?: string | null;
  backend: string;
  geometry: string;
  viewers: number;
  control?: string | null;
  error?: string | null;
}

/** Whether a turn is under way, so that it can be stopped and new messages queue up. */
export function isBusy(status: ChatStatus | null): boolean {
  return status === "running" || status === "interrupting";
}
