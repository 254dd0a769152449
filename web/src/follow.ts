/** Pure: whether new content keeps being scrolled into sight. */

// Pixels from the end within which new content keeps being followed.
const NEAR_END = 80;

export interface ScrollPosition {
  readonly scrollTop: number;
  readonly scrollHeight: number;
  readonly clientHeight: number;
}

/**
 * Whether to follow after a scroll event. Being far from the end is not enough to stop: content
 * may have grown since the event was caused. Only a move up, from *lastTop*, is somebody's wish.
 */
export function followsAfterScroll(
  following: boolean,
  lastTop: number,
  { scrollTop, scrollHeight, clientHeight }: ScrollPosition,
): boolean {
  if (clientHeight === 0) return following;
  if (scrollHeight - scrollTop - clientHeight < NEAR_END) return true;
  return following && scrollTop >= lastTop - 1;
}
