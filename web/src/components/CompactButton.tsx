/** Asks for a summary, so that a long conversation goes on with a short prompt. */

import { api } from "../api";
import { notice } from "../state";
import { Icon } from "./icons";

export function CompactButton({ chatId }: { chatId: string }) {
  const compact = () => {
    notice.value = null;
    api.compact(chatId).catch((error: unknown) => {
      notice.value = error instanceof Error ? error.message : String(error);
    });
  };
  return (
    <button
      type="button"
      class="button small ghost"
      data-testid="compact"
      aria-label="Summarise"
      title="Summarise: the model goes on with a summary; you keep seeing everything"
      onClick={compact}
    >
      <Icon name="fold" />
    </button>
  );
}
