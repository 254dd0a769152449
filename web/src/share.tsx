/** The page behind a share link: the live desktop and nothing else. */

import { render } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { ApiError } from "./api";
import { DesktopView } from "./desktop";
import type { DesktopSource } from "./desktop";
import type { DesktopStatus } from "./wire";

const HERE = location.href.replace(/[?#].*$/, "");

async function status(): Promise<DesktopStatus> {
  let response: Response;
  try {
    response = await fetch(`${HERE}/status`);
  } catch {
    throw new ApiError(0, "The server cannot be reached.");
  }
  if (response.ok) return (await response.json()) as DesktopStatus;
  const ended = response.status === 404;
  throw new ApiError(
    response.status,
    ended ? "This link has ended." : "The desktop is not available.",
  );
}

const source: DesktopSource = {
  streamUrl: `${HERE.replace(/^http/, "ws")}/desktop`,
  seat: null,
  status,
  control: () => Promise.reject(new ApiError(403, "This link only shows.")),
};

function Shared() {
  const target = useRef<HTMLDivElement>(null);
  const view = useSignal<DesktopView | null>(null);
  useEffect(() => {
    if (!target.current) return;
    const opened = new DesktopView(source, target.current);
    view.value = opened;
    return () => opened.close();
  }, []);
  const phase = view.value?.phase.value ?? "connecting";
  return (
    <main class="shared" aria-label="Desktop">
      <div class="screen-canvas" data-testid="desktop-canvas" data-phase={phase} ref={target} />
      {phase !== "live" && (
        <p class="screen-note" role="status" data-testid="desktop-note">
          {view.value?.reason.value ?? "Connecting to the desktop…"}
        </p>
      )}
    </main>
  );
}

render(<Shared />, document.body);
