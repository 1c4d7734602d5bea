/** Marks what one passage of a finding states differently from the other. */
import { diffWords, type DiffPart } from "../agents/wordDiff.ts"

const escapeRegExp = (text: string) => text.replaceAll(/[.*+?^${}()|[\]\\/-]/gu, String.raw`\$&`)

/**
 * Splits `text` into parts. Those that state one of `values`, as whole words in any case, are marked as new. If none is
 * found, for example because a number is written in words, the words that `other` does not have are marked.
 */
export const markDifferences = (
  text: string,
  other: string,
  values: ReadonlyArray<string>
): ReadonlyArray<DiffPart> => {
  const patterns = values.filter((value) => value !== "").map(escapeRegExp)
  const pattern = new RegExp(String.raw`(?<![\p{L}\p{N}])(?:${patterns.join("|")})(?![\p{L}\p{N}])`, "giu")
  const matches = patterns.length === 0 ? [] : [...text.matchAll(pattern)]
  if (matches.length === 0) return diffWords(text, other)
  const parts: Array<DiffPart> = []
  let end = 0
  for (const { 0: value, index } of matches) {
    if (index > end) parts.push({ text: text.slice(end, index), isNew: false })
    parts.push({ text: value, isNew: true })
    end = index + value.length
  }
  if (end < text.length) parts.push({ text: text.slice(end), isNew: false })
  return parts
}
