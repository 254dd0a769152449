/** The desktop's clipboard: read it, write it. */

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { DesktopView } from "../desktop";

export function ClipboardDialog({ view, onClose }: { view: DesktopView; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const text = useRef<HTMLTextAreaElement>(null);
  const refused = useSignal(false);
  useEffect(() => dialog.current?.showModal(), []);
  const send = () => {
    refused.value = !view.paste(text.current?.value ?? "");
    if (!refused.value) dialog.current?.close();
  };
  return (
    <dialog ref={dialog} class="sheet" aria-label="Clipboard of the desktop" onClose={onClose}>
      <h2>Clipboard of the desktop</h2>
      <textarea
        ref={text}
        rows={8}
        data-testid="clipboard-text"
        aria-label="Text on the clipboard"
        defaultValue={view.clipboard.value}
      />
      {refused.value && (
        <p class="note error" role="alert" data-testid="clipboard-refused">
          This text is longer than 1 MiB and was not sent.
        </p>
      )}
      <footer>
        <button type="button" class="button" onClick={() => dialog.current?.close()}>
          Close
        </button>
        <button type="button" class="button primary" data-testid="clipboard-send" onClick={send}>
          Put on the desktop
        </button>
      </footer>
    </dialog>
  );
}
