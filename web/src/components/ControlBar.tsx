/** Who has control of the desktop, and the buttons that change it. */

import { useSignal } from "@preact/signals";
import type { DesktopView } from "../desktop";
import { sizeLabel } from "../resources";
import { ClipboardDialog } from "./ClipboardDialog";

export function ControlBar({ view, name }: { view: DesktopView; name: string | null }) {
  const holder = view.holder.value;
  const withheld = view.status.value?.clipboard_withheld_bytes ?? 0;
  const clipboardShown = useSignal(false);
  return (
    <div class="control-bar" data-holder={holder}>
      <span role="status" data-testid="control-state">
        {holder === "me"
          ? "You have control; the agent only looks."
          : holder === "other"
            ? `${name ?? "A person"} has control elsewhere.`
            : "The agent has control."}
      </span>
      {view.controlNote.value && (
        <span class="control-note" role="alert" data-testid="control-note">
          {view.controlNote.value}
        </span>
      )}
      {holder === "me" && withheld > 0 && (
        <span class="control-note" role="alert" data-testid="clipboard-withheld">
          The text on the desktop's clipboard has {sizeLabel(withheld)}; up to 1 MiB comes here.
        </span>
      )}
      {holder === "me" && (
        <button
          type="button"
          class="button small"
          data-testid="clipboard"
          onClick={() => (clipboardShown.value = true)}
        >
          Clipboard
        </button>
      )}
      <button
        type="button"
        class={holder === "me" ? "button small primary" : "button small"}
        data-testid={holder === "me" ? "give-back" : "take-control"}
        disabled={view.asking.value || holder === "other"}
        onClick={() => void view.control(holder === "me" ? "give_back" : "take")}
      >
        {holder === "me" ? "Give back" : "Take control"}
      </button>
      {clipboardShown.value && (
        <ClipboardDialog view={view} onClose={() => (clipboardShown.value = false)} />
      )}
    </div>
  );
}
