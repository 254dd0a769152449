/** The live desktop beside the conversation. */

import { useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { DesktopView, chatDesktop } from "../desktop";
import type { DesktopPhase } from "../desktop";
import { control, conversation, desktopShown, me, pane, setDesktopShown } from "../state";
import { isWide } from "../viewport";
import { ControlBar } from "./ControlBar";
import { Icon } from "./icons";
import { RecentSteps } from "./RecentSteps";
import { ShareDialog } from "./ShareDialog";

const PHASE_WORDS: Record<DesktopPhase, string> = {
  connecting: "connecting",
  live: "live",
  unavailable: "not available",
  reconnecting: "reconnecting",
};

export function DesktopPanel() {
  const visible = isWide.value ? desktopShown.value : pane.value === "desktop";
  if (!visible) return null;
  // Only an open chat's desktop is asked for, so that none is started unasked.
  const chatId = conversation.value?.chatId ?? null;
  return (
    <aside class="pane desktop" aria-label="Desktop">
      {chatId === null ? <NoDesktop /> : <LiveDesktop key={chatId} chatId={chatId} />}
      {conversation.value && <RecentSteps conversation={conversation.value} />}
    </aside>
  );
}

function HideButton() {
  return (
    <button
      type="button"
      class="button small ghost wide-only icon-only"
      aria-label="Hide desktop"
      title="Hide desktop"
      onClick={() => setDesktopShown(false)}
    >
      <Icon name="hide" />
    </button>
  );
}

function NoDesktop() {
  return (
    <>
      <header class="bar">
        <h2>Desktop</h2>
        <HideButton />
      </header>
      <div class="screen">
        <p class="screen-note">
          <Icon name="desktop" />
          The live desktop appears here when a chat is open.
        </p>
      </div>
    </>
  );
}

function LiveDesktop({ chatId }: { chatId: string }) {
  const target = useRef<HTMLDivElement>(null);
  const view = useSignal<DesktopView | null>(null);
  const screen = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!target.current) return;
    const opened = new DesktopView(chatDesktop(chatId, me.value?.user.id ?? ""), target.current);
    view.value = opened;
    return () => {
      opened.close();
      control.value = null;
    };
  }, [chatId]);
  const status = view.value?.status.value ?? null;
  const known = view.value?.phase.value ?? "connecting";
  // A server that the chat does not hear from sends no picture either, though nothing tells so.
  const lost = conversation.value?.connection.value === "reconnecting";
  const phase = lost && known === "live" ? "reconnecting" : known;
  const shareShown = useSignal(false);
  useSignalEffect(() => {
    const holder = view.value?.holder.value ?? "agent";
    control.value = { holder, name: view.value?.status.value?.control ?? null };
  });
  useSignalEffect(() => {
    const size = /^(\d+)x(\d+)/.exec(view.value?.status.value?.geometry ?? "");
    if (size && screen.current) screen.current.style.aspectRatio = `${size[1]} / ${size[2]}`;
  });
  return (
    <>
      <header class="bar">
        <h2>{status ? `Desktop ${status.name}` : "Desktop"}</h2>
        <span class="pill" role="status">
          <span class="dot" data-status={phase} aria-hidden="true" />
          <span data-testid="desktop-state">{PHASE_WORDS[phase]}</span>
        </span>
        {status && phase === "live" && (
          <Facts viewers={status.viewers} geometry={status.geometry} />
        )}
        <button
          type="button"
          class="button small ghost"
          data-testid="share"
          onClick={() => (shareShown.value = true)}
        >
          Share
        </button>
        <HideButton />
      </header>
      {shareShown.value && (
        <ShareDialog chatId={chatId} onClose={() => (shareShown.value = false)} />
      )}
      <div class="screen" ref={screen}>
        <div
          class="screen-canvas"
          data-testid="desktop-canvas"
          data-phase={phase}
          data-holder={view.value?.holder.value ?? "agent"}
          ref={target}
        />
        {known !== "live" && (
          <p class="screen-note">
            <Icon name="desktop" />
            {view.value?.reason.value ?? "Connecting to the desktop…"}
          </p>
        )}
      </div>
      {view.value && phase === "live" && (
        <ControlBar view={view.value} name={status?.control ?? null} />
      )}
    </>
  );
}

function Facts({ viewers, geometry }: { viewers: number; geometry: string }) {
  return (
    <>
      <span class="fact size">{geometry.replace("x", " × ")}</span>
      <span class="fact" title="People watching" data-testid="desktop-viewers">
        <Icon name="eye" /> {viewers} {viewers === 1 ? "viewer" : "viewers"}
      </span>
    </>
  );
}
