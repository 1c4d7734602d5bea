/** Marks the differences of two statements. */
import { differing, type Piece } from "../agents/wordDiff.ts"

const escaped = (text: string) => text.replaceAll(/[.*+?^${}()|[\]\\/-]/gu, String.raw`\$&`)

/**
 * `text` in pieces, of which those are new that state one of `values`, whole words whatever their case; where none of them is
 * written so, such as a number in words, those that `other` does not have.
 */
export const marked = (text: string, other: string, values: ReadonlyArray<string>): ReadonlyArray<Piece> => {
  const wanted = values.filter((value) => value !== "").map(escaped)
  const pattern = new RegExp(String.raw`(?<![\p{L}\p{N}])(?:${wanted.join("|")})(?![\p{L}\p{N}])`, "giu")
  const found = wanted.length === 0 ? [] : [...text.matchAll(pattern)]
  if (found.length === 0) return differing(text, other)
  const pieces: Array<Piece> = []
  let end = 0
  for (const { 0: value, index } of found) {
    if (index > end) pieces.push({ text: text.slice(end, index), isNew: false })
    pieces.push({ text: value, isNew: true })
    end = index + value.length
  }
  if (end < text.length) pieces.push({ text: text.slice(end), isNew: false })
  return pieces
}
