/** The live desktop: a view-only RFB connection that comes back by itself. */

import type RFB from "@novnc/novnc";
import { signal } from "@preact/signals";
import { ApiError, api, socketUrl } from "./api";
import { backoffMs } from "./backoff";
import type { DesktopStatus } from "./wire";

export type DesktopPhase = "connecting" | "live" | "unavailable" | "reconnecting";

const STATUS_INTERVAL_MS = 5_000;

export class DesktopView {
  readonly phase = signal<DesktopPhase>("connecting");
  readonly status = signal<DesktopStatus | null>(null);
  /** Why there is no picture; null while there is one. */
  readonly reason = signal<string | null>(null);
  private rfb: RFB | null = null;
  private retryTimer: number | undefined;
  private readonly statusTimer: number;
  private failures = 0;
  private closed = false;

  constructor(
    private readonly chatId: string,
    private readonly target: HTMLElement,
  ) {
    this.statusTimer = window.setInterval(() => void this.refreshStatus(), STATUS_INTERVAL_MS);
    void this.connect();
  }

  close(): void {
    this.closed = true;
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
      this.open(new Rfb(this.target, socketUrl(`/chats/${this.chatId}/desktop`), { shared: true }));
    } catch {
      // The viewer is loaded on demand, and a newer server may have replaced it.
      this.reason.value = "The desktop viewer could not be loaded. Reload the page.";
      this.retry("unavailable");
    }
  }

  private open(rfb: RFB): void {
    this.rfb = rfb;
    rfb.viewOnly = true;
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

  private async loadStatus(): Promise<boolean> {
    try {
      const status = await api.desktop(this.chatId);
      if (this.closed) return false;
      this.status.value = status;
      if (status.state !== "failed") return true;
      this.reason.value = status.error ?? "The desktop could not be started.";
    } catch (error) {
      if (this.closed) return false;
      this.reason.value = error instanceof ApiError ? error.message : String(error);
    }
    return false;
  }
}
