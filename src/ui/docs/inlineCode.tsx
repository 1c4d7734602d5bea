/** @jsxImportSource preact */
/** Renders a description, in which code is between backticks. */
export const inlineCode = (text: string) =>
  text.split("`").map((part, index) => (index % 2 === 0 ? part : <code key={index}>{part}</code>))
