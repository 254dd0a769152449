/** The server's JSON routes. Every failure is an {@link ApiError}; nothing is retried here. */

import { signal } from "@preact/signals";
import type { Chat, DesktopStatus, Me, Posted } from "./wire";

/** True once the server has refused our cookie. */
export const unauthorised = signal(false);

/** Milliseconds until a request counts as lost. */
const ANSWER_MS = 20_000;

const BASE = "/api/experimental";

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

async function request<T>(method: "GET" | "POST", path: string, body?: unknown): Promise<T> {
  const init: RequestInit = { method, credentials: "same-origin" };
  if (body !== undefined) {
    init.headers = { "Content-Type": "application/json" };
    init.body = JSON.stringify(body);
  }
  let response: Response;
  let text: string;
  try {
    response = await fetch(BASE + path, { ...init, signal: AbortSignal.timeout(ANSWER_MS) });
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

const textContent = (text: string) => [{ type: "text", text }];

export const api = {
  me: () => request<Me>("GET", "/me"),
  chats: () => request<Chat[]>("GET", "/chats"),
  chat: (id: string) => request<Chat>("GET", `/chats/${id}`),
  desktop: (id: string) => request<DesktopStatus>("GET", `/chats/${id}/desktop/status`),
  interrupt: (id: string) => request<Chat>("POST", `/chats/${id}/interrupt`),
  create: (text: string, modelConfigId: string | null) =>
    request<Chat>("POST", "/chats", {
      content: textContent(text),
      ...(modelConfigId === null ? {} : { model_config_id: modelConfigId }),
    }),
  send: (id: string, text: string, busyBehavior: "queue" | "interrupt") =>
    request<Posted>("POST", `/chats/${id}/messages`, {
      content: textContent(text),
      busy_behavior: busyBehavior,
    }),
};

/** Address of a stored file's bytes. */
export const fileUrl = (fileId: string) => `${BASE}/chats/files/${encodeURIComponent(fileId)}`;

/** Absolute ws(s) address of a same-origin route below the API's base. */
export function socketUrl(path: string): string {
  const scheme = location.protocol === "https:" ? "wss:" : "ws:";
  return `${scheme}//${location.host}${BASE}${path}`;
}
