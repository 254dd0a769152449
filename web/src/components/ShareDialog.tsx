/** Links by which others may watch the desktop of a chat. */

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { ApiError, api } from "../api";
import type { Share } from "../wire";

/** Hours that a link may live. */
const LIFETIMES = [1, 8, 24, 24 * 7];

export function ShareDialog({ chatId, onClose }: { chatId: string; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const shares = useSignal<readonly Share[]>([]);
  const made = useSignal<Share | null>(null);
  const problem = useSignal<string | null>(null);
  const hours = useSignal(LIFETIMES[0] ?? 1);
  const attempt = async (work: () => Promise<void>) => {
    problem.value = null;
    try {
      await work();
      shares.value = await api.shares(chatId);
    } catch (error) {
      problem.value = error instanceof ApiError ? error.message : String(error);
    }
  };
  useEffect(() => {
    dialog.current?.showModal();
    void attempt(() => Promise.resolve());
  }, [chatId]);
  return (
    <dialog ref={dialog} class="sheet" aria-label="Share the desktop" onClose={onClose}>
      <h2>Share the desktop</h2>
      <p>Whoever has the link sees the desktop, and can do nothing to it, until the link ends.</p>
      <div class="row">
        <select
          aria-label="How long the link lives"
          value={hours.value}
          onChange={(event) => (hours.value = Number(event.currentTarget.value))}
        >
          {LIFETIMES.map((count) => (
            <option key={count} value={count}>
              {count < 48 ? `${count} h` : `${count / 24} days`}
            </option>
          ))}
        </select>
        <button
          type="button"
          class="button primary"
          data-testid="share-create"
          onClick={() =>
            void attempt(async () => {
              made.value = await api.share(chatId, hours.value);
            })
          }
        >
          Make a link
        </button>
      </div>
      {made.value?.url && (
        <input
          readOnly
          aria-label="The new link"
          data-testid="share-url"
          value={new URL(made.value.url, location.href).href}
          onFocus={(event) => event.currentTarget.select()}
        />
      )}
      {problem.value && (
        <p class="note error" role="alert">
          {problem.value}
        </p>
      )}
      <ul>
        {shares.value.map((share) => (
          <li key={share.id} data-testid="share-row">
            <span>
              until {new Date(share.expires_at).toLocaleString()}, opened {share.views} times
            </span>
            <button
              type="button"
              class="button small"
              data-testid="share-revoke"
              onClick={() =>
                void attempt(async () => {
                  await api.revokeShare(chatId, share.id);
                })
              }
            >
              Revoke
            </button>
          </li>
        ))}
      </ul>
      <footer>
        <button type="button" class="button" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </footer>
    </dialog>
  );
}
