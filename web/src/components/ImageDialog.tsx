/** The dialog that shows a screenshot in full. */

import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { Icon } from "./icons";

export const enlarged = signal<{ source: string; label: string } | null>(null);

export function ImageDialog() {
  const image = enlarged.value;
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (image) dialog.current?.showModal();
  }, [image]);
  if (!image) return null;
  const close = () => dialog.current?.close();
  return (
    <dialog
      ref={dialog}
      class="image-dialog"
      aria-label={image.label}
      onClose={() => (enlarged.value = null)}
      onClick={(event) => event.target === event.currentTarget && close()}
    >
      <figure>
        <img src={image.source} alt={image.label} />
        <figcaption>
          <span>{image.label}</span>
          <button type="button" class="button small ghost" onClick={close}>
            <Icon name="close" /> Close
          </button>
        </figcaption>
      </figure>
    </dialog>
  );
}
