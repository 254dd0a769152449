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
  clock: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11zM8 5v3.2l2 1.3",
  eye: "M1.5 8S4 3.8 8 3.8 14.5 8 14.5 8 12 12.2 8 12.2 1.5 8 1.5 8zM8 6.3a1.7 1.7 0 1 0 0 3.4 1.7 1.7 0 0 0 0-3.4z",
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
