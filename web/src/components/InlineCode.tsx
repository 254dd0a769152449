/** Plain text in which `backticks` mark code; nothing else is interpreted. */
export function InlineCode({ text }: { text: string }) {
  return (
    <>
      {text
        .split(/(`[^`\n]+`)/)
        .map((piece, index) =>
          index % 2 === 1 ? <code key={index}>{piece.slice(1, -1)}</code> : piece,
        )}
    </>
  );
}
