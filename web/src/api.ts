/** The server's JSON routes. Every failure is an {@link ApiError}; nothing is retried here. */

import { signal } from "@preact/signals";
import type {
  BusyBehavior,
  InputPart,
  Chat,
  ChatMcp,
  ContextDiff,
  ControlState,
  DesktopStatus,
  Me,
  Posted,
  ReasoningEffort,
  Share,
} from "./wire";

/** True once the server has refused our cookie. */
export const unauthorised = signal(false);

/** Milliseconds until a request counts as lost. */
const ANSWER_MS = 20_000;

/** Below wherever the page is served: a proxy may put a prefix before it. */
const base = () => new URL("api/experimental/", location.href).href;

/** A refused or failed request. *status* is the HTTP status, 0 when the server was not reached. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly detail: string | null = null,
  ) {
    super(message);
  }
}

async function request<T>(
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE",
  path: string,
  body?: unknown,
): Promise<T> {
  const init: RequestInit = { method, credentials: "same-origin" };
  if (body !== undefined) {
    init.headers = { "Content-Type": "application/json" };
    init.body = JSON.stringify(body);
  }
  let response: Response;
  let text: string;
  try {
    response = await fetch(base() + path.slice(1), {
      ...init,
      signal: AbortSignal.timeout(ANSWER_MS),
    });
    text = await response.text();
  } catch (error) {
    const late = error instanceof DOMException && error.name === "TimeoutError";
    throw new ApiError(
      0,
      late
        ? `The server has not answered for ${ANSWER_MS / 1000} s.`
        : "The server cannot be reached.",
    );
  }
  if (response.status === 401) unauthorised.value = true;
  if (!response.ok) throw toError(response.status, text);
  return (text === "" ? null : JSON.parse(text)) as T;
}

function toError(status: number, text: string): ApiError {
  try {
    const body = JSON.parse(text) as { message?: string; detail?: string };
    if (body.message) return new ApiError(status, body.message, body.detail ?? null);
  } catch {
    // A proxy's page instead of our JSON: the status line is all there is to say.
  }
  return new ApiError(status, `The server answered ${status}.`);
}

/** Where else people log in, besides by one-time URLs; null: nowhere. */
export interface LoginMethods {
  oidc: { url: string; title: string } | null;
}

/** Asked without a login; what can't be had is nothing to offer. */
export async function loginMethods(): Promise<LoginMethods> {
  try {
    const response = await fetch(new URL("login/methods", location.href), {
      signal: AbortSignal.timeout(ANSWER_MS),
    });
    return response.ok ? ((await response.json()) as LoginMethods) : { oidc: null };
  } catch {
    return { oidc: null };
  }
}

export interface ChatChange {
  title?: string;
  archived?: boolean;
  pin_order?: number;
  plan_mode?: "plan" | null;
}

const textContent = (text: string): InputPart[] => [{ type: "text", text }];
const answerContent = (question_id: string, text: string): InputPart[] => [
  { type: "question-answer", question_id, text },
];

export const api = {
  me: () => request<Me>("GET", "/me"),
  logout: () => request<null>("POST", "/logout"),
  chats: () => request<Chat[]>("GET", "/chats"),
  chat: (id: string) => request<Chat>("GET", `/chats/${id}`),
  contextDiff: (id: string) => request<ContextDiff>("GET", `/chats/${id}/context/diff`),
  refreshContext: (id: string) => request<Chat>("PUT", `/chats/${id}/context`),
  mcp: (id: string) => request<ChatMcp>("GET", `/chats/${id}/mcp`),
  chooseMcp: (id: string, ids: readonly string[]) =>
    request<null>("PATCH", `/chats/${id}`, { mcp_server_ids: ids }),
  pushKey: () => request<{ public_key: string }>("GET", "/push/key"),
  subscribePush: (subscription: PushSubscriptionJSON) =>
    request<null>("POST", "/push/subscriptions", subscription),
  unsubscribePush: (endpoint: string) =>
    request<null>("DELETE", "/push/subscriptions", { endpoint }),
  desktop: (id: string) => request<DesktopStatus>("GET", `/chats/${id}/desktop/status`),
  control: (id: string, wish: "take" | "give_back", seat: string) =>
    request<ControlState>("POST", `/chats/${id}/desktop/control`, { wish, seat }),
  shares: (id: string) => request<Share[]>("GET", `/chats/${id}/desktop/shares`),
  share: (id: string, hours: number) =>
    request<Share>("POST", `/chats/${id}/desktop/shares`, { expires_in_s: hours * 3600 }),
  revokeShare: (id: string, shareId: string) =>
    request<null>("DELETE", `/chats/${id}/desktop/shares/${shareId}`),
  archived: () => request<Chat[]>("GET", "/chats?q=archived%3Atrue&limit=200"),
  change: (id: string, fields: ChatChange) => request<null>("PATCH", `/chats/${id}`, fields),
  edit: (id: string, messageId: number, text: string) =>
    request<unknown>("PATCH", `/chats/${id}/messages/${messageId}`, { content: textContent(text) }),
  deleteQueued: (id: string, queuedId: number) =>
    request<null>("DELETE", `/chats/${id}/queue/${queuedId}`),
  promoteQueued: (id: string, queuedId: number) =>
    request<unknown>("POST", `/chats/${id}/queue/${queuedId}/promote`),
  answerTools: (id: string, results: readonly { tool_call_id: string; output: unknown }[]) =>
    request<null>("POST", `/chats/${id}/tool-results`, { results }),
  compact: (id: string) => request<Chat>("POST", `/chats/${id}/compact`),
  interrupt: (id: string) => request<Chat>("POST", `/chats/${id}/interrupt`),
  create: (
    text: string,
    modelConfigId: string | null,
    planFirst: boolean,
    effort: ReasoningEffort | null,
  ) =>
    request<Chat>("POST", "/chats", {
      content: textContent(text),
      client_type: "ui",
      ...(modelConfigId === null ? {} : { model_config_id: modelConfigId }),
      ...(planFirst ? { plan_mode: "plan" } : {}),
      ...(effort === null ? {} : { reasoning_effort: effort }),
    }),
  /** *effort*: null is the model's own, undefined changes nothing. */
  send: (
    id: string,
    text: string,
    busyBehavior: BusyBehavior,
    questionId: string | null = null,
    effort?: ReasoningEffort | null,
  ) =>
    request<Posted>("POST", `/chats/${id}/messages`, {
      content: questionId === null ? textContent(text) : answerContent(questionId, text),
      busy_behavior: busyBehavior,
      ...(effort === undefined ? {} : { reasoning_effort: effort }),
    }),
};

/** Address of a stored file's bytes. */
export const fileUrl = (fileId: string) => `${base()}chats/files/${encodeURIComponent(fileId)}`;

/** Absolute ws(s) address of a route below the API's base. */
export function socketUrl(path: string): string {
  return base().replace(/^http/, "ws") + path;
}
