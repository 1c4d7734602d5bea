import type { ParseLimits } from "../DocumentParser.ts"

/** Enough for a book of 3,000 pages. Ten million characters are about 12,500 chunks. */
export const defaultLimits: ParseLimits = { maxPages: 3_000, maxCharacters: 10_000_000 }
