/**
 * Wheel movements as notches.
 *
 * noVNC makes one notch of any movement of 50 px or more and forgets the rest: a
 * fast wheel or touchpad scrolls far less than the hand did. Here a notch is a
 * hundred pixels, what is left is kept for the next movement, and noVNC gets each
 * notch as a movement of its own.
 */

const NOTCH_PX = 100;
const LINE_PX = 100 / 3;
const PAGE_PX = 800;
/** Notches of one movement: more is a runaway. */
const MAX_NOTCHES = 20;
/** Milliseconds after which what is left of a movement is forgotten. */
const PAUSE_MS = 500;
/** The movement of which noVNC makes one notch. */
const NOVNC_STEP_PX = 50;

const UNITS = [1, LINE_PX, PAGE_PX];

/** Adds up movements along one axis; gives whole notches, signed. */
export class Notches {
  private left = 0;
  private at = 0;

  add(px: number, now: number): number {
    const isNew = now - this.at > PAUSE_MS || px * this.left < 0;
    if (px !== 0) this.at = now;
    const sum = (isNew ? 0 : this.left) + px;
    const notches = Math.trunc(sum / NOTCH_PX) || 0; // never -0
    this.left = sum - notches * NOTCH_PX;
    return Math.max(-MAX_NOTCHES, Math.min(MAX_NOTCHES, notches));
  }
}

/** Gives the canvas below *target* its wheel movements in notches while *isHeeded*, until *signal*. */
export function countNotches(
  target: HTMLElement,
  isHeeded: () => boolean,
  signal: AbortSignal,
): void {
  const [x, y] = [new Notches(), new Notches()];
  target.addEventListener(
    "wheel",
    (event) => {
      if (!event.isTrusted || !isHeeded()) return;
      event.preventDefault();
      event.stopPropagation();
      const unit = UNITS[event.deltaMode] ?? 1;
      const across = x.add(event.deltaX * unit, event.timeStamp);
      const down = y.add(event.deltaY * unit, event.timeStamp);
      const move = (deltaX: number, deltaY: number) =>
        event.target?.dispatchEvent(
          new WheelEvent("wheel", {
            bubbles: true,
            cancelable: true,
            clientX: event.clientX,
            clientY: event.clientY,
            deltaX,
            deltaY,
          }),
        );
      for (let n = 0; n < Math.abs(across); n++) move(Math.sign(across) * NOVNC_STEP_PX, 0);
      for (let n = 0; n < Math.abs(down); n++) move(0, Math.sign(down) * NOVNC_STEP_PX);
    },
    { capture: true, passive: false, signal },
  );
}
