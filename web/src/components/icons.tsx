/** Line icons, 16 units square, in the colour of the text around them. */

const PATHS = {
  plus: "M8 3v10M3 8h10",
  send: "M8 13V3M3.8 7.2 8 3l4.2 4.2",
  stop: "M4.5 4.5h7v7h-7z",
  chats: "M2.5 3.5h11v7.5H7L4 13.5V11H2.5z",
  list: "M3 4.5h10M3 8h10M3 11.5h6",
  desktop: "M2 3h12v8H2zM6 13.5h4M8 11v2.5",
  chevron: "M6 4l4 4-4 4",
  down: "M8 3v10M3.8 8.8 8 13l4.2-4.2",
  close: "M4 4l8 8M12 4l-8 8",
  pointer: "M4 2.5l8.5 5-3.8 1-2 3.6z",
  terminal: "M2 3h12v10H2zM4.5 6l2 2-2 2M8 10.5h3",
  file: "M4 2h5l3 3v9H4zM9 2v3h3",
  agent: "M4 6h8v6.5H4zM8 3.2V6M6.5 9v.8M9.5 9v.8",
  tool: "M9.6 6.4 3 13M13 5.2A3 3 0 0 1 9.2 2.2l1.6 1.7-.6 1.6-1.7.6L6.9 4.5",
  search: "M7 3a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM10 10l3.5 3.5",
  edit: "M3 13l.7-2.8L10.6 3.3l2.1 2.1-6.9 6.9zM9.4 4.5l2.1 2.1",
  more: "M3.5 8h.01M8 8h.01M12.5 8h.01",
  pin: "M5.5 2.5h5l-.6 4 2.1 2.5H4l2.1-2.5zM8 9v4.5",
  clock: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11zM8 5v3.2l2 1.3",
  eye: "M1.5 8S4 3.8 8 3.8 14.5 8 14.5 8 12 12.2 8 12.2 1.5 8 1.5 8zM8 6.3a1.7 1.7 0 1 0 0 3.4 1.7 1.7 0 0 0 0-3.4z",
  fold: "M8 1.5v4.5M5.8 4 8 6.2 10.2 4M8 14.5V10M5.8 12 8 9.8l2.2 2.2M3 8h10",
  bell: "M4 11.5V7a4 4 0 0 1 8 0v4.5l1 1H3zM6.5 13.5a1.5 1.5 0 0 0 3 0",
  mute: "M4 11.5V7a4 4 0 0 1 8 0v4.5l1 1H3zM6.5 13.5a1.5 1.5 0 0 0 3 0M2.5 2.5l11 11",
  hide: "M2 3h12v10H2zM10 3v10",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
