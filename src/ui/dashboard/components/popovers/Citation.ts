import type { Citation as Declared } from "../../../../domain/chat/ChatTurn.ts"

/** While a reply streams, only the citation's target is known. */
export type Citation = Pick<typeof Declared.Encoded, "index" | "title" | "url"> &
  Partial<Pick<typeof Declared.Encoded, "sourceName" | "text" | "score" | "span">>
