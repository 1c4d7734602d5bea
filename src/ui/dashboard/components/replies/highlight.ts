/**
 * Highlights parts of a Markdown text. A marker character is inserted before and after each part, and Elements.ts
 * renders the text between them as a `mark`. Each marker is moved to the nearest position where it does not change the
 * Markdown.
 */
import { highlightEnd, highlightStart } from "../../../markdown/Elements.ts"
import { parse } from "../../../markdown/Tree.ts"

/** Positions in a text, in UTF-16 code units. `to` is exclusive. */
export interface TextRange {
  readonly from: number
  readonly to: number
}

/** Positions that are tried for a marker. Enough to leave the address of a link, within which no marker fits. */
const maxTries = 100

const treeOf = (text: string) => JSON.stringify(parse(text))
const markerCount = (text: string) => text.length - withoutHighlights(text).length
const insert = (text: string, start: number, marker: string) =>
  text.slice(0, start) + marker + text.slice(start)

/** Highlights `ranges`, which must be in order and must not overlap. */
export const highlightRanges = (text: string, ranges: ReadonlyArray<TextRange>): string => {
  const expectedTree = treeOf(text)
  /** True if all markers are in the rendered text, and the Markdown means the same without them. */
  const fits = (candidate: string) => {
    const shown = treeOf(candidate)
    return markerCount(shown) === markerCount(candidate) && withoutHighlights(shown) === expectedTree
  }
  /** Inserts `marker` at the first position that fits, from `start` towards `limit`; undefined if there is none. */
  const placeMarker = (source: string, marker: string, start: number, limit: number): string | undefined => {
    const step = start < limit ? 1 : -1
    for (
      let tries = 0, position = start;
      tries < maxTries && position !== limit;
      tries += 1, position += step
    ) {
      // White space may be the indent or the end of a line, which is not part of the text.
      const neighbour = source[step > 0 ? position : position - 1] ?? ""
      const candidate = insert(source, position, marker)
      if (neighbour.trim() !== "" && fits(candidate)) return candidate
    }
    return undefined
  }
  // From the last one, so that the positions before it stay valid.
  return ranges.reduceRight((done, { from, to }) => {
    const ended = placeMarker(done, highlightEnd, to, from)
    return (ended && placeMarker(ended, highlightStart, from, ended.indexOf(highlightEnd, from))) ?? done
  }, text)
}

/** `text` without markers. */
export const withoutHighlights = (text: string): string =>
  text.replaceAll(highlightStart, "").replaceAll(highlightEnd, "")

/** Highlights `spans` where they first occur in `text`. Spans that do not occur are ignored. */
export const highlightSpans = (text: string, spans: ReadonlyArray<string>): string => {
  const plain = withoutHighlights(text)
  const ranges = spans
    .flatMap((span) => {
      const from = span === "" ? -1 : plain.indexOf(span)
      return from < 0 ? [] : [{ from, to: from + span.length }]
    })
    .toSorted((one, other) => one.from - other.from)
  return highlightRanges(
    plain,
    ranges.map(({ from, to }, index) => ({ from, to: Math.min(to, ranges[index + 1]?.from ?? to) }))
  )
}
