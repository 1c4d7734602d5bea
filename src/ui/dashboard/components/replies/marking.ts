/**
 * Marks parts of a Markdown text for display: a character before each and one after, which Elements.ts draws as marked
 * text. Each stands at the nearest place where it changes nothing of what the Markdown says.
 */
import { markEnd, markStart } from "../../../markdown/Elements.ts"
import { parse } from "../../../markdown/Tree.ts"

/** From a place in the text up to another one, in UTF-16 units. */
export interface TextRange {
  readonly from: number
  readonly to: number
}

/** How many places are tried for a mark. Beyond the target of a link, the longest thing that no mark may split. */
const maxTries = 100

const tree = (text: string) => JSON.stringify(parse(text))
const count = (text: string) => text.length - withoutMarks(text).length
const insert = (text: string, at: number, mark: string) => text.slice(0, at) + mark + text.slice(at)

/** `text` with `places` marked, which do not overlap and are in order. */
export const markedAt = (text: string, places: ReadonlyArray<TextRange>): string => {
  const same = tree(text)
  /** Every mark is part of what is shown, and the rest is as before. */
  const fits = (made: string) => {
    const shown = tree(made)
    return count(shown) === count(made) && withoutMarks(shown) === same
  }
  /** With `mark` at the first place that fits from `at` towards `limit`; undefined if there is none. */
  const placed = (into: string, mark: string, at: number, limit: number): string | undefined => {
    const step = at < limit ? 1 : -1
    for (let tries = 0, place = at; tries < maxTries && place !== limit; tries += 1, place += step) {
      // Blanks end a line or begin one: no mark belongs there.
      const inside = into[step > 0 ? place : place - 1] ?? ""
      const made = insert(into, place, mark)
      if (inside.trim() !== "" && fits(made)) return made
    }
    return undefined
  }
  // From the last one, so that the places before it stay where they are.
  return places.reduceRight((made, { from, to }) => {
    const ended = placed(made, markEnd, to, from)
    return (ended && placed(ended, markStart, from, ended.indexOf(markEnd, from))) ?? made
  }, text)
}

/** A text that has none of the marks yet. */
export const withoutMarks = (text: string): string => text.replaceAll(markStart, "").replaceAll(markEnd, "")

/** `text` with its `spans` marked; those that it does not have are left out. */
export const marked = (text: string, spans: ReadonlyArray<string>): string => {
  const plain = withoutMarks(text)
  const places = spans
    .flatMap((span) => {
      const from = span === "" ? -1 : plain.indexOf(span)
      return from < 0 ? [] : [{ from, to: from + span.length }]
    })
    .toSorted((one, other) => one.from - other.from)
  return markedAt(
    plain,
    places.map(({ from, to }, index) => ({ from, to: Math.min(to, places[index + 1]?.from ?? to) }))
  )
}
