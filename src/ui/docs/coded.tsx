/** @jsxImportSource preact */
/** The words of a description, whose code stands between back ticks. */
export const coded = (text: string) =>
  text.split("`").map((part, place) => (place % 2 === 0 ? part : <code key={place}>{part}</code>))
