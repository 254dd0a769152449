/** The live desktop: an RFB connection that comes back by itself, view-only without control. */

import type RFB from "@novnc/novnc";
import { signal } from "@preact/signals";
import { ApiError, api, socketUrl } from "./api";
import { backoffMs } from "./backoff";
import { seat } from "./seat";
import { countNotches } from "./wheel";
import type { ControlState, DesktopStatus } from "./wire";

export type DesktopPhase = "connecting" | "live" | "unavailable" | "reconnecting";

/** Who has control: this page, another person, or the agent. */
export type Holder = "me" | "other" | "agent";

/** Where a desktop is seen, and who we are there. */
export interface DesktopSource {
  readonly streamUrl: string;
  /** Our seat as the server names it; null where nobody can have control. */
  readonly seat: string | null;
  status(): Promise<DesktopStatus>;
  control(wish: "take" | "give_back"): Promise<ControlState>;
}

/** The desktop that a chat works at. */
export const chatDesktop = (chatId: string, userId: string): DesktopSource => ({
  streamUrl: socketUrl(`chats/${chatId}/desktop?seat=${seat}`),
  seat: `${userId}/${seat}`,
  status: () => api.desktop(chatId),
  control: (wish) => api.control(chatId, wish, seat),
});

const STATUS_INTERVAL_MS = 2_000;
/** Bytes of UTF-8 that a clipboard carries; the server drops longer texts. */
export const MAX_CLIPBOARD_BYTES = 1024 * 1024;

export class DesktopView {
  readonly phase = signal<DesktopPhase>("connecting");
  readonly status = signal<DesktopStatus | null>(null);
  /** Why there is no picture; null while there is one. */
  readonly reason = signal<string | null>(null);
  readonly holder = signal<Holder>("agent");
  /** Why a wish for control was refused, or that it ended; null when there is nothing to say. */
  readonly controlNote = signal<string | null>(null);
  readonly asking = signal(false);
  /** The desktop's clipboard, as far as it was told. */
  readonly clipboard = signal("");
  private rfb: RFB | null = null;
  private retryTimer: number | undefined;
  private readonly statusTimer: number;
  private failures = 0;
  private closed = false;
  private readonly ended = new AbortController();

  constructor(
    private readonly source: DesktopSource,
    private readonly target: HTMLElement,
  ) {
    const isHeeded = () => this.rfb !== null && !this.rfb.viewOnly;
    countNotches(target, isHeeded, this.ended.signal);
    this.statusTimer = window.setInterval(() => void this.refreshStatus(), STATUS_INTERVAL_MS);
    void this.connect();
  }

  /** Asks for control, or gives it back. */
  async control(wish: "take" | "give_back"): Promise<void> {
    this.asking.value = true;
    this.controlNote.value = null;
    try {
      const state = await this.source.control(wish);
      if (this.closed) return;
      this.setHolder(state.seat, state.name, wish === "give_back");
    } catch (error) {
      this.controlNote.value = error instanceof ApiError ? error.message : String(error);
      void this.loadStatus();
    } finally {
      this.asking.value = false;
    }
  }

  /** Puts *text* on the desktop's clipboard; false when it is too long. */
  paste(text: string): boolean {
    if (new TextEncoder().encode(text).length > MAX_CLIPBOARD_BYTES) return false;
    this.clipboard.value = text;
    this.rfb?.clipboardPasteFrom(text);
    return true;
  }

  close(): void {
    this.closed = true;
    this.ended.abort();
    clearTimeout(this.retryTimer);
    clearInterval(this.statusTimer);
    this.rfb?.disconnect();
    this.rfb = null;
    this.target.replaceChildren();
  }

  /**
   * The status is asked first: a browser does not tell why a WebSocket was
   * refused, and logs an error for each refusal.
   */
  private async connect(): Promise<void> {
    const available = await this.loadStatus();
    if (this.closed) return;
    if (!available) return this.retry("unavailable");
    try {
      const { default: Rfb } = await import("@novnc/novnc");
      if (this.closed) return;
      this.open(new Rfb(this.target, this.source.streamUrl, { shared: true }));
    } catch {
      // The viewer is loaded on demand, and a newer server may have replaced it.
      this.reason.value = "The desktop viewer could not be loaded. Reload the page.";
      this.retry("unavailable");
    }
  }

  private open(rfb: RFB): void {
    this.rfb = rfb;
    rfb.viewOnly = this.holder.value !== "me";
    rfb.scaleViewport = true;
    rfb.focusOnClick = false;
    rfb.background = "transparent";
    rfb.addEventListener("connect", () => {
      if (this.closed) return;
      this.failures = 0;
      this.phase.value = "live";
      this.reason.value = null;
      void this.refreshStatus();
    });
    rfb.addEventListener("disconnect", () => {
      if (this.closed || this.rfb !== rfb) return;
      this.rfb = null;
      this.reason.value ??= "The connection to the desktop was lost.";
      this.retry("reconnecting");
    });
    rfb.addEventListener("clipboard", ({ detail }) => {
      this.clipboard.value = detail.text;
    });
    rfb.addEventListener("securityfailure", ({ detail }) => {
      this.reason.value = detail.reason ?? "The desktop refused the connection.";
    });
  }

  private retry(phase: DesktopPhase): void {
    this.failures += 1;
    this.phase.value = phase;
    this.retryTimer = window.setTimeout(() => void this.connect(), backoffMs(this.failures));
  }

  /** Viewers and state change while the picture stands; without one, connect() asks by itself. */
  private async refreshStatus(): Promise<void> {
    if (this.phase.value === "live" && !document.hidden) await this.loadStatus();
  }

  private setHolder(
    holder: string | null | undefined,
    name: string | null | undefined,
    wished: boolean,
  ) {
    const mine = this.source.seat !== null && holder === this.source.seat;
    const before = this.holder.value;
    this.holder.value = mine ? "me" : holder ? "other" : "agent";
    if (before === "me" && !mine && !wished) {
      this.controlNote.value = holder
        ? `${name} has control now.`
        : "Your control has ended; the agent has control again.";
    }
    if (this.rfb === null || before === this.holder.value) return;
    this.rfb.viewOnly = !mine;
    this.rfb.focusOnClick = mine;
    if (mine) this.rfb.focus();
    else this.rfb.blur();
  }

  private async loadStatus(): Promise<boolean> {
    try {
      const status = await this.source.status();
      if (this.closed) return false;
      this.status.value = status;
      // An answer that was under way when control changed tells of before.
      if (!this.asking.value) this.setHolder(status.control_seat, status.control, false);
      if (status.state !== "failed") return true;
      this.reason.value = status.error ?? "The desktop could not be started.";
    } catch (error) {
      if (this.closed) return false;
      this.reason.value = error instanceof ApiError ? error.message : String(error);
    }
    return false;
  }
}
