/** Whether the panes stand side by side. The width is the one in styles/layout.css. */

import { signal } from "@preact/signals";

const query = window.matchMedia("(min-width: 861px)");
export const isWide = signal(query.matches);
query.addEventListener("change", () => (isWide.value = query.matches));
