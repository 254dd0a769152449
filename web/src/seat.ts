/** Names this page to the server, so that control of a desktop is this page's and no other's. */

const KEY = "seat";

function create(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The same after a reload, another in another tab. */
export const seat = (() => {
  const known = sessionStorage.getItem(KEY) ?? create();
  sessionStorage.setItem(KEY, known);
  return known;
})();
