/** Live state of the dialog of MCP servers: what the open chat has, and choosing among the deployment's. */

import { batch, signal } from "@preact/signals";
import { ApiError, api } from "./api";
import type { ChatMcp, ChatMcpServer } from "./wire";

/** The chat whose servers are shown; null while the dialog is closed. */
export const mcpChatId = signal<string | null>(null);
export const chatMcp = signal<ChatMcp | null>(null);
export const mcpProblem = signal<string | null>(null);
export const choosing = signal(false);

const REFRESH_MS = 3_000;
let timer: number | undefined;

export function openMcp(chatId: string): void {
  batch(() => {
    mcpChatId.value = chatId;
    chatMcp.value = null;
    mcpProblem.value = null;
  });
  clearInterval(timer);
  // Servers come and go by themselves.
  timer = window.setInterval(() => void load(chatId), REFRESH_MS);
  void load(chatId);
}

export function closeMcp(): void {
  clearInterval(timer);
  mcpChatId.value = null;
}

/** Lets the chat have a server of the deployment, or not. */
export async function choose(server: ChatMcpServer, isOn: boolean): Promise<void> {
  const chatId = mcpChatId.value;
  if (chatId === null || chatMcp.value === null) return;
  const ids = chosenIds(chatMcp.value.servers, server.id ?? "", isOn);
  choosing.value = true;
  await attempt(chatId, async () => {
    await api.chooseMcp(chatId, ids);
    show(chatId, await api.mcp(chatId));
  });
  choosing.value = false;
}

/** Pure: the deployment's servers that a chat has once *id* is on or off. */
export function chosenIds(servers: readonly ChatMcpServer[], id: string, isOn: boolean): string[] {
  return servers
    .filter((server) => (server.id === id ? isOn : server.is_on))
    .flatMap((server) => (server.id ? [server.id] : []));
}

async function load(chatId: string): Promise<void> {
  await attempt(chatId, async () => show(chatId, await api.mcp(chatId)));
}

function show(chatId: string, told: ChatMcp): void {
  if (mcpChatId.value !== chatId) return;
  batch(() => {
    chatMcp.value = told;
    mcpProblem.value = null;
  });
}

async function attempt(chatId: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (mcpChatId.value === chatId) mcpProblem.value = error.message;
  }
}
