/** Bottom tabs of the narrow layout. */

import { pane } from "../state";
import type { Pane } from "../state";
import { Icon } from "./icons";
import type { IconName } from "./icons";

const TABS: { id: Pane; label: string; icon: IconName }[] = [
  { id: "chats", label: "Chats", icon: "list" },
  { id: "chat", label: "Chat", icon: "chats" },
  { id: "desktop", label: "Desktop", icon: "desktop" },
];

export function Tabs() {
  return (
    <nav class="tabs" aria-label="Views">
      {TABS.map(({ id, label, icon }) => (
        <button
          key={id}
          type="button"
          aria-current={pane.value === id ? "page" : undefined}
          onClick={() => (pane.value = id)}
        >
          <Icon name={icon} />
          {label}
        </button>
      ))}
    </nav>
  );
}
