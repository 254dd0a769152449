/** Whether this browser is told of chats while no page is open, and changing that. */

import { signal } from "@preact/signals";
import { ApiError, api } from "./api";
import { readNoteData } from "./push-message";

/** null: this browser can't (no HTTPS, or a private window). */
export type NotifyState = "unknown" | "off" | "on" | "denied" | null;

export const notifyState = signal<NotifyState>("unknown");
export const notifyProblem = signal<string | null>(null);
export const notifyBusy = signal(false);

const canNotify = () =>
  "serviceWorker" in navigator && "PushManager" in window && "Notification" in window;

export async function readNotifyState(): Promise<void> {
  if (!canNotify()) {
    notifyState.value = null;
    return;
  }
  if (Notification.permission === "denied") {
    notifyState.value = "denied";
    return;
  }
  const registration = await navigator.serviceWorker.getRegistration();
  const subscription = await registration?.pushManager.getSubscription();
  notifyState.value = subscription ? "on" : "off";
}

export async function setNotify(on: boolean): Promise<void> {
  notifyBusy.value = true;
  notifyProblem.value = null;
  try {
    await (on ? subscribe() : unsubscribe());
  } catch (error) {
    notifyProblem.value = describe(error);
  } finally {
    notifyBusy.value = false;
    await readNotifyState();
  }
}

async function subscribe(): Promise<void> {
  if ((await Notification.requestPermission()) !== "granted") return;
  await navigator.serviceWorker.register("sw.js");
  const registration = await navigator.serviceWorker.ready;
  const { public_key: key } = await api.pushKey();
  const subscription = await registration.pushManager.subscribe({
    userVisibleOnly: true,
    applicationServerKey: key,
  });
  try {
    await api.subscribePush(subscription.toJSON());
  } catch (error) {
    // The server does not know of it, so the browser must not believe in it.
    await subscription.unsubscribe();
    throw error;
  }
}

async function unsubscribe(): Promise<void> {
  const registration = await navigator.serviceWorker.getRegistration();
  const subscription = await registration?.pushManager.getSubscription();
  if (!subscription) return;
  await subscription.unsubscribe();
  await api.unsubscribePush(subscription.endpoint);
}

/** Closes what this browser shows of the chat at *path*: its person has just written there. */
export async function closeNotifications(path: string): Promise<void> {
  if (!canNotify()) return;
  const registration = await navigator.serviceWorker.getRegistration();
  for (const shown of (await registration?.getNotifications()) ?? [])
    if (readNoteData(shown.data).path === path) shown.close();
}

function describe(error: unknown): string {
  if (error instanceof ApiError) return error.message;
  return error instanceof Error
    ? `This browser could not subscribe: ${error.message}`
    : String(error);
}
