/**
 * The service worker: shows what is pushed, takes it back when told, and opens the chat that it is about.
 * Caches nothing.
 */

/// <reference lib="webworker" />
import { isCleared, readNoteData, readPush } from "./push-message";
import type { ClearPush, NoteData, ShownPush } from "./push-message";

declare const self: ServiceWorkerGlobalScope;

self.addEventListener("install", () => void self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("push", (event) => {
  const told = readPush(event.data?.text() ?? "");
  event.waitUntil(told.type === "clear" ? clear(told) : notify(told));
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  const url = new URL(readNoteData(event.notification.data).path, self.registration.scope).href;
  event.waitUntil(show(url));
});

function notify({ title, body, path, tag, at }: ShownPush): Promise<void> {
  const data: NoteData = { path, at };
  return self.registration.showNotification(title, { body, tag, icon: "assets/icon.svg", data });
}

async function clear(told: ClearPush): Promise<void> {
  for (const shown of await self.registration.getNotifications({ tag: told.tag }))
    if (isCleared(told, shown.data)) shown.close();
}

/** Brings a page of ours to the front, or opens one. */
async function show(url: string): Promise<void> {
  const pages = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  for (const page of pages) {
    if (new URL(page.url).pathname === new URL(url).pathname) {
      await page.navigate(url).catch(() => null);
      await page.focus();
      return;
    }
  }
  await self.clients.openWindow(url);
}
