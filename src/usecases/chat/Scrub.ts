/**
 * Removes credentials and binding values from whatever comes back from a tool or a model, in the encodings that servers
 * commonly echo them in.
 */
import type { JsonObject, JsonValue } from "../../domain/Text.ts"

const mark = "[redacted]"

/** Shorter values are part of ordinary words: they are only removed where they stand alone. */
const telling = 4
/** From this length on, the value is also looked for inside of other encoded text. */
const distinctive = 6

/** What base64 makes of `bytes` wherever they lie in a longer text: the characters that depend on nothing else. */
const insideBase64 = (bytes: Buffer): ReadonlyArray<string> =>
  [0, 1, 2].flatMap((before) => {
    const encoded = Buffer.concat([Buffer.alloc(before), bytes])
      .toString("base64")
      .replaceAll("=", "")
    const whole = Math.floor(((before + bytes.length) * 8) / 6)
    const inner = encoded.slice(Math.ceil((before * 8) / 6), whole)
    return inner.length < distinctive ? [] : [inner, inner.replaceAll("+", "-").replaceAll("/", "_")]
  })

const percent = (text: string): string => encodeURIComponent(text.toWellFormed())
const lowerPercent = (text: string): string =>
  text.replaceAll(/%[0-9A-F]{2}/g, (escape) => escape.toLowerCase())

/** The value as it stands in JSON inside of JSON, four deep. */
const escaped = (value: string): ReadonlyArray<string> => {
  const inJson = (text: string) => JSON.stringify(text).slice(1, -1)
  const once = inJson(value)
  const twice = inJson(once)
  const thrice = inJson(twice)
  return [value, once, twice, thrice, inJson(thrice), once.replaceAll("/", "\\/")]
}

const inUrl = (value: string): ReadonlyArray<string> => {
  const url = percent(value)
  const form = url.replaceAll("%20", "+")
  const strict = url.replaceAll(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)
  return [url, lowerPercent(url), form, lowerPercent(form), strict]
}

const inBytes = (value: string): ReadonlyArray<string> => {
  if (value.length < distinctive) return []
  const bytes = Buffer.from(value)
  return [bytes.toString("hex"), bytes.toString("hex").toUpperCase(), ...insideBase64(bytes)]
}

const encodings = (value: string): ReadonlyArray<string> => {
  if (value.length < telling) return [value]
  const html = value.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")
  const forms = new Set([...escaped(value), html, html.replaceAll('"', "&quot;").replaceAll("'", "&#39;")])
  return [...forms].flatMap((form) => [form, ...inUrl(form), ...inBytes(form)])
}

const isWord = (character: string | undefined) => character !== undefined && /[\p{L}\p{N}_]/u.test(character)

export interface Streaming {
  /** What may be shown now that `delta` has come. */
  readonly push: (delta: string) => string
  /** What was held back, once nothing follows. */
  readonly flush: () => string
}

/** Looks for all of `values` at once. */
export class Scrubber {
  /** By their first character, longest first. */
  readonly #needles = new Map<string, Array<string>>()
  #longest = 0

  constructor(values: Iterable<string>) {
    const needles = new Set([...values].filter((value) => value !== "").flatMap(encodings))
    for (const needle of [...needles].toSorted((a, b) => b.length - a.length)) {
      const first = needle.charAt(0)
      this.#needles.set(first, [...(this.#needles.get(first) ?? []), needle])
      this.#longest = Math.max(this.#longest, needle.length)
    }
  }

  /** The end of the needle that stands at `place`, `place` when there is none, or undefined when more text may tell. */
  #match(text: string, place: number, before: string, final: boolean): number | undefined {
    const candidates = this.#needles.get(text.charAt(place)) ?? []
    const left = text.length - place
    const rest = left > this.#longest ? "" : text.slice(place)
    for (const needle of candidates) {
      const end = place + needle.length
      const alone = needle.length < telling
      if (!final && rest !== "" && (needle.length > left || (alone && needle.length === left))) {
        if (needle.startsWith(rest)) return undefined
      }
      if (!text.startsWith(needle, place)) continue
      if (!alone || (!isWord(before) && !isWord(text[end]))) return end
    }
    return place
  }

  /** The shown part of `text` and what must wait; `before` is the character that came before it. */
  #scan(text: string, before: string, final: boolean): readonly [shown: string, waiting: number] {
    let shown = ""
    let kept = 0
    let place = 0
    while (place < text.length) {
      const end = this.#match(text, place, text[place - 1] ?? before, final)
      if (end === undefined) break
      if (end > place) {
        shown += text.slice(kept, place) + mark
        kept = end
      }
      place = Math.max(end, place + 1)
    }
    return [shown + text.slice(kept, place), place]
  }

  readonly text = (text: string): string => (this.#longest === 0 ? text : this.#scan(text, "", true)[0])

  /** Every text in `value`, names of members included; a number is taken as it is written. */
  readonly json = (value: JsonValue): JsonValue => {
    if (typeof value === "string") return this.text(value)
    if (typeof value === "number") {
      const written = String(value)
      const shown = this.text(written)
      return shown === written ? value : shown
    }
    if (typeof value !== "object" || value === null) return value
    return isList(value) ? value.map(this.json) : this.object(value)
  }

  readonly object = (value: JsonObject): JsonObject =>
    Object.fromEntries(Object.entries(value).map(([name, member]) => [this.text(name), this.json(member)]))

  /** For text that comes in pieces: what may be the beginning of a needle waits for the rest. */
  readonly streaming = (): Streaming => {
    let pending = ""
    let before = ""
    const take = (final: boolean): string => {
      const [shown, place] = this.#scan(pending, before, final)
      before = pending[place - 1] ?? before
      pending = pending.slice(place)
      return shown
    }
    return {
      push: (delta) => {
        pending += delta
        return take(false)
      },
      flush: () => take(true)
    }
  }
}

const isList = (value: JsonValue): value is ReadonlyArray<JsonValue> => Array.isArray(value)
