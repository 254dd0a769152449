/** One chat's live state: the event stream, folded into a signal. */

import { signal } from "@preact/signals";
import { socketUrl } from "./api";
import type { Outgoing } from "./outgoing";
import { EventSocket } from "./socket";
import { emptyConversation, reduce, reduceAll } from "./stream";
import type { Message, QueuedMessage, StreamEvent } from "./wire";

export type Connection = "connecting" | "open" | "reconnecting";

/** The server is heard at least every 10 s. */
const SILENCE_MS = 25_000;

export class Conversation {
  readonly state = signal(emptyConversation);
  readonly connection = signal<Connection>("connecting");
  /** The message that the server has not answered yet. */
  readonly sending = signal<Outgoing | null>(null);
  /** The last message whose sending failed; the server may have it all the same. */
  readonly failed = signal<Outgoing | null>(null);
  /** Whether what is new is scrolled into sight. */
  readonly following = signal(true);
  private readonly socket: EventSocket<StreamEvent>;

  constructor(readonly chatId: string) {
    this.socket = new EventSocket<StreamEvent>(socketUrl(`chats/${chatId}/stream`), SILENCE_MS, {
      onOpen: () => {
        this.connection.value = "open";
        this.state.value = reduce(this.state.value, { type: "connected" });
      },
      onEvents: (events) => {
        this.state.value = reduceAll(this.state.value, events);
      },
      onLost: () => {
        this.connection.value = "reconnecting";
      },
    });
  }

  /** Shows at once what the server stored for our own request. */
  posted(messages: readonly Message[], queued: QueuedMessage | null): void {
    this.state.value = reduce(this.state.value, { type: "posted", messages, queued });
  }

  close(): void {
    this.socket.close();
  }
}
