/**
 * Splits long replies into several messages: at the end of a paragraph, a sentence or a word, never inside a grapheme.
 */

const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" })
/** Number of UTF-16 units after the limit that are searched for the end of the grapheme that crosses it. */
const maxGraphemeUnits = 256

/** In order of preference. A part may end at the end of a match. */
const ends = [/\n\s*\n/g, /[.!?…][)"'”’\]*_]*(?=\s)|[。！？]/g, /\n/g, /\s/g]

/** Positions up to `limit` at which a grapheme begins, without 0. */
const boundaries = (text: string, limit: number): ReadonlySet<number> => {
  const starts = Array.from(graphemes.segment(text.slice(0, limit + maxGraphemeUnits)), ({ index }) => index)
  return new Set(starts.filter((index) => index > 0 && index <= limit))
}

/** The cut within a grapheme that is longer than a whole message. It is never within a surrogate pair. */
const forcedCut = (text: string, limit: number): number => {
  const before = text.charCodeAt(limit - 1)
  return before >= 0xd800 && before <= 0xdbff ? limit - 1 : limit
}

const cutPosition = (text: string, limit: number): number => {
  const allowed = boundaries(text, limit)
  const window = text.slice(0, limit + 1)
  for (const end of ends) {
    const places = [...window.matchAll(end)]
      .map(({ 0: match, index }) => index + match.length)
      .filter((place) => place <= limit && place >= limit / 4 && allowed.has(place))
    const last = places.at(-1)
    if (last !== undefined) return last
  }
  return allowed.size === 0 ? forcedCut(text, limit) : Math.max(...allowed)
}

/**
 * Parts of at most `limit` UTF-16 units (at least 2), in order, without surrounding white space; none for blank text.
 */
export const split = (text: string, limit: number): ReadonlyArray<string> => {
  const parts: Array<string> = []
  let rest = text.trim()
  while (rest.length > limit) {
    const cut = cutPosition(rest, limit)
    parts.push(rest.slice(0, cut).trim())
    rest = rest.slice(cut).trim()
  }
  return [...parts, rest].filter((part) => part !== "")
}

/** Blocks of code, and formatting marks of `MarkedText`. The same mark opens and closes a range. */
const marks = /^(?:```|\ue004)$|[\ue001-\ue003]/gm
/** UTF-16 units of each part that are reserved for marks that close and reopen ranges. */
const reservedMarkUnits = 16
const isFence = (mark: string) => mark === "```" || mark === "\ue004"

/** {@link split} for formatted text: a range that is cut is closed in its part and opened again in the next one. */
export const splitFormatted = (text: string, limit: number): ReadonlyArray<string> => {
  const open: Array<string> = []
  const pieces = text.length > limit ? split(text, limit - reservedMarkUnits) : split(text, limit)
  return pieces.flatMap((piece) => {
    const before = open.map((mark) => (isFence(mark) ? `${mark}\n` : mark)).join("")
    for (const [mark] of piece.matchAll(marks)) {
      const at = open.indexOf(mark)
      if (at === -1) open.push(mark)
      else open.splice(at, 1)
    }
    const after = open.toReversed().map((mark) => (isFence(mark) ? `\n${mark}` : mark))
    // A part of marks alone is dropped: the part before has closed its ranges.
    return piece.replace(marks, "").trim() === "" ? [] : [`${before}${piece}${after.join("")}`]
  })
}
