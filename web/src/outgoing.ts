/** Pure: a message on its way to the server, and whether the stream already shows it. */

import type { ConversationState } from "./stream";
import type { Part } from "./wire";

export interface Outgoing {
  readonly text: string;
  /** The newest ids known when it was sent: what carries its text and is newer is the message itself. */
  readonly lastMessageId: number;
  readonly lastQueuedId: number;
}

export function outgoing(text: string, { messages, queue }: ConversationState): Outgoing {
  // The same text in the queue becomes a new message too, and could not be told apart.
  const ambiguous = queue.some((queued) => textOf(queued.content) === text);
  return {
    text,
    lastMessageId: ambiguous ? Infinity : newest(messages),
    lastQueuedId: newest(queue),
  };
}

/** Whether the server has it, even if its answer to us was lost. */
export function arrived(sent: Outgoing, { messages, queue }: ConversationState): boolean {
  return (
    messages.some(
      ({ id, role, content }) =>
        id > sent.lastMessageId && role === "user" && textOf(content) === sent.text,
    ) || queue.some(({ id, content }) => id > sent.lastQueuedId && textOf(content) === sent.text)
  );
}

/** *typed* without *sent* in front of it; null when it does not start with it. */
export function withoutSent(typed: string, sent: string): string | null {
  if (typed === sent) return "";
  return typed.startsWith(`${sent}\n`) ? typed.slice(sent.length + 1) : null;
}

/** What was not sent, with what was typed meanwhile below it. */
export function rejoin(unsent: string | null, typed: string): string {
  if (unsent === null) return typed;
  return typed === "" ? unsent : `${unsent}\n${typed}`;
}

const newest = (items: readonly { id: number }[]) =>
  items.reduce((most, { id }) => Math.max(most, id), 0);

export const textOf = (content: readonly Part[]) =>
  content
    .map((part) => (part.type === "text" || part.type === "question-answer" ? part.text : ""))
    .join("\n");
