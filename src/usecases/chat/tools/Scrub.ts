/**
 * Removes credentials and binding values from the output of tools and models, in the encodings in which servers
 * commonly echo them.
 */
import { mapJson, mapJsonObject } from "../../../domain/JsonValue.ts"
import type { JsonObject, JsonValue } from "../../../domain/Text.ts"
import type { StreamingText } from "../StreamingText.ts"

const redactedMark = "[redacted]"

/** Shorter values also occur in ordinary words: they are removed only where they stand alone, and not in `[1]`. */
const minLengthAnywhere = 4
/** Values of at least this length are also searched for inside other encoded text. */
const minLengthEncoded = 6

/** The base64 forms of `bytes` inside a longer text: the characters that do not depend on their neighbours. */
const insideBase64 = (bytes: Buffer): ReadonlyArray<string> =>
  [0, 1, 2].flatMap((before) => {
    const encoded = Buffer.concat([Buffer.alloc(before), bytes])
      .toString("base64")
      .replaceAll("=", "")
    const whole = Math.floor(((before + bytes.length) * 8) / 6)
    const inner = encoded.slice(Math.ceil((before * 8) / 6), whole)
    return inner.length < minLengthEncoded ? [] : [inner, inner.replaceAll("+", "-").replaceAll("/", "_")]
  })

const percent = (text: string): string => encodeURIComponent(text.toWellFormed())
const lowerPercent = (text: string): string =>
  text.replaceAll(/%[0-9A-F]{2}/g, (escape) => escape.toLowerCase())

/** The value as escaped in JSON inside JSON, up to four levels. */
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
  if (value.length < minLengthEncoded) return []
  const bytes = Buffer.from(value)
  return [bytes.toString("hex"), bytes.toString("hex").toUpperCase(), ...insideBase64(bytes)]
}

/** The value as escaped in HTML. */
const inHtml = (value: string): ReadonlyArray<string> => {
  const html = value.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")
  return [html, html.replaceAll('"', "&quot;").replaceAll("'", "&#39;")]
}

/** The encoded forms of a value, the likely ones in earlier rounds. */
const encodingRounds: ReadonlyArray<(value: string) => Iterable<string>> = [
  (value) => [value],
  (value) => [...escaped(value).slice(0, 2), ...inUrl(value)],
  inBytes,
  function* (value) {
    for (const form of new Set([...escaped(value), ...inHtml(value)])) {
      yield form
      yield* inUrl(form)
      yield* inBytes(form)
    }
  }
]

/**
 * Maximum characters of encoded forms, not counting the values themselves: the values of one request must not slow
 * other turns. Short values come first, because a long one is rarely a credential.
 */
const maxFormCharacters = 65_536

const needlesOf = (values: Iterable<string>): ReadonlySet<string> => {
  const sorted = [...new Set(values)].filter((value) => value !== "").toSorted((a, b) => a.length - b.length)
  const needles = new Set<string>()
  let left = maxFormCharacters
  for (const [index, round] of encodingRounds.entries()) {
    for (const value of sorted) {
      if (index > 0 && value.length < minLengthAnywhere) continue
      for (const form of round(value)) {
        if (needles.has(form)) continue
        if (index > 0) left -= form.length
        if (left < 0) return needles
        needles.add(form)
      }
    }
  }
  return needles
}

const isWord = (character: string | undefined) => character !== undefined && /[\p{L}\p{N}_]/u.test(character)

/** Factor that leaves room for a character code beside a state in one number. */
const codesPerState = 65_536

/**
 * Aho-Corasick automaton. Its state is the longest prefix of a needle that the text so far ends in. One pass finds all
 * needles, including overlapping ones.
 */
class Automaton {
  readonly #edges = new Map<number, number>()
  /** The failure link of each state: the state of the longest proper suffix. State 0 is the start. */
  readonly #shorter = [0]
  readonly #depth = [0]
  readonly #isInner = [false]
  readonly #isShort = [false]
  /** The longest suffix of the state that may be a stand-alone needle. */
  readonly #shortSuffix = [0]
  /** Length of the longest needle that ends here and may be part of a word. */
  readonly #found = [0]
  /** Length of the longest suffix that may become a needle, or is a stand-alone needle. */
  readonly #open = [0]

  constructor(needles: Iterable<string>) {
    const byDepth: Array<Array<number>> = []
    for (const needle of needles) this.#add(needle, byDepth)
    // In order of depth, so that shorter prefixes are settled first.
    for (const states of byDepth) for (const state of states) this.#settle(state)
  }

  #depthOf(state: number): number {
    return this.#depth[state] ?? 0
  }

  #add(needle: string, byDepth: Array<Array<number>>): void {
    let state = 0
    for (let index = 0; index < needle.length; index++) {
      const edge = state * codesPerState + needle.charCodeAt(index)
      let next = this.#edges.get(edge)
      if (next === undefined) {
        next = this.#depth.length
        this.#edges.set(edge, next)
        this.#isInner[state] = true
        this.#depth.push(index + 1)
        // Holds the edge from the parent until the state is settled.
        this.#shorter.push(edge)
        this.#isInner.push(false)
        this.#isShort.push(false)
        this.#shortSuffix.push(0)
        this.#found.push(0)
        this.#open.push(0)
        const states = byDepth[index]
        if (states === undefined) byDepth.push([next])
        else states.push(next)
      }
      state = next
    }
    if (needle.length < minLengthAnywhere) this.#isShort[state] = true
    else this.#found[state] = needle.length
  }

  #settle(state: number): void {
    const edge = this.#shorter[state] ?? 0
    const parent = Math.floor(edge / codesPerState)
    const shorter = parent === 0 ? 0 : this.next(this.#shorter[parent] ?? 0, edge % codesPerState)
    this.#shorter[state] = shorter
    if (this.#found[state] === 0) this.#found[state] = this.#found[shorter] ?? 0
    this.#shortSuffix[state] =
      this.#depthOf(state) < minLengthAnywhere ? state : (this.#shortSuffix[shorter] ?? 0)
    const isOpen = this.#isInner[state] === true || this.#isShort[state] === true
    this.#open[state] = isOpen ? this.#depthOf(state) : (this.#open[shorter] ?? 0)
  }

  next(from: number, code: number): number {
    for (let state = from; ; state = this.#shorter[state] ?? 0) {
      const next = this.#edges.get(state * codesPerState + code)
      if (next !== undefined) return next
      if (state === 0) return 0
    }
  }

  found(state: number): number {
    return this.#found[state] ?? 0
  }

  open(state: number): number {
    return this.#open[state] ?? 0
  }

  /** Lengths of the stand-alone needles that end here. */
  alone(from: number): ReadonlyArray<number> {
    const lengths: Array<number> = []
    for (let state = this.#shortSuffix[from] ?? 0; state !== 0; state = this.#shorter[state] ?? 0) {
      if (this.#isShort[state] === true) lengths.push(this.#depthOf(state))
    }
    return lengths
  }
}

/** A queue with constant time for adding and removing, amortized. */
class Queue<A> {
  #items: Array<A> = []
  #removedCount = 0

  get first(): A | undefined {
    return this.#items[this.#removedCount]
  }

  get last(): A | undefined {
    return this.#items.length > this.#removedCount ? this.#items.at(-1) : undefined
  }

  push(item: A): void {
    this.#items.push(item)
  }

  pop(): void {
    this.#items.pop()
  }

  shift(): void {
    this.#removedCount++
    if (this.#removedCount * 2 < this.#items.length) return
    this.#items = this.#items.slice(this.#removedCount)
    this.#removedCount = 0
  }
}

interface Span {
  readonly from: number
  readonly to: number
}

/** The scan of one text. Positions are counted from its beginning. */
class Scan implements StreamingText {
  readonly #automaton: Automaton
  /** Text not emitted yet, in its original pieces, and the characters already used of the first. */
  readonly #pieces = new Queue<string>()
  #used = 0
  #state = 0
  #end = 0
  #shown = 0
  /** Ranges to hide in the text not emitted yet. Overlapping needles form one range. */
  readonly #hidden = new Queue<Span>()
  /** Stand-alone needles that end here and count if no word character follows. */
  #undecided: ReadonlyArray<Span> = []
  /** The last characters: a stand-alone needle must not follow a word character either. */
  #last = ""

  constructor(automaton: Automaton) {
    this.#automaton = automaton
  }

  push(delta: string): string {
    if (delta !== "") this.#pieces.push(delta)
    for (let index = 0; index < delta.length; index++) this.#read(delta.charAt(index))
    return this.#show(this.#end - this.#automaton.open(this.#state))
  }

  flush(): string {
    this.#decide(undefined)
    return this.#show(this.#end)
  }

  #read(character: string): void {
    if (this.#undecided.length > 0) this.#decide(character)
    this.#state = this.#automaton.next(this.#state, character.charCodeAt(0))
    this.#last = (this.#last + character).slice(-minLengthAnywhere)
    this.#end++
    const length = this.#automaton.found(this.#state)
    if (length > 0) this.#hide({ from: this.#end - length, to: this.#end })
    const alone = this.#automaton.alone(this.#state)
    if (alone.length > 0) this.#undecided = alone.map((one) => ({ from: this.#end - one, to: this.#end }))
  }

  #decide(next: string | undefined): void {
    const spans = this.#undecided
    this.#undecided = []
    if (isWord(next)) return
    for (const span of spans) {
      const length = span.to - span.from
      const before = this.#last.at(-length - 1)
      if (isWord(before)) continue
      const isCitation = before === "[" && next === "]" && /^\d{1,2}$/.test(this.#last.slice(-length))
      if (!isCitation) this.#hide(span)
    }
  }

  #hide({ from, to }: Span): void {
    let begin = from
    for (let last = this.#hidden.last; last !== undefined && last.to > begin; last = this.#hidden.last) {
      begin = Math.min(begin, last.from)
      this.#hidden.pop()
    }
    this.#hidden.push({ from: begin, to })
  }

  /** Returns the text before `position`, up to a hidden range that crosses it: that range may still grow. */
  #show(position: number): string {
    let shown = ""
    for (let next = this.#hidden.first; ; next = this.#hidden.first) {
      if (next === undefined || next.to > position)
        return shown + this.#take(Math.max(0, Math.min(position, next?.from ?? position) - this.#shown))
      shown += this.#take(next.from - this.#shown) + redactedMark
      this.#take(next.to - next.from)
      this.#hidden.shift()
    }
  }

  /** Removes and returns the next `count` characters. */
  #take(count: number): string {
    let taken = ""
    for (
      let piece = this.#pieces.first;
      piece !== undefined && taken.length < count;
      piece = this.#pieces.first
    ) {
      const part = piece.slice(this.#used, this.#used + count - taken.length)
      taken += part
      this.#used += part.length
      if (this.#used < piece.length) break
      this.#pieces.shift()
      this.#used = 0
    }
    this.#shown += taken.length
    return taken
  }
}

const passThrough: StreamingText = { push: (delta) => delta, flush: () => "" }

/** Removes all of `values` in one pass. */
export class Scrubber {
  readonly #values: Set<string>
  /** Made for the first text, because it takes tens of milliseconds for the longest values; null without values. */
  #automaton: Automaton | null | undefined

  constructor(values: Iterable<string>) {
    this.#values = new Set(values)
  }

  /** Also removes `value` from texts that begin after this. */
  add(value: string): void {
    if (this.#values.has(value)) return
    this.#values.add(value)
    this.#automaton = undefined
  }

  #build(): Automaton | null {
    const needles = needlesOf(this.#values)
    return needles.size === 0 ? null : new Automaton(needles)
  }

  readonly text = (text: string): string => {
    const scan = this.streaming()
    return scan.push(text) + scan.flush()
  }

  /** Scrubs every string in `value`, including property names. Numbers are compared as they are written. */
  readonly json = (value: JsonValue): JsonValue => mapJson(value, this.#replacements)

  readonly object = (value: JsonObject): JsonObject => mapJsonObject(value, this.#replacements)

  /** {@link object} of a JSON Schema: its numbers are limits, and stay. */
  readonly schema = (value: JsonObject): JsonObject =>
    mapJsonObject(value, { text: this.text, name: this.text })

  readonly #number = (value: number): JsonValue => {
    const written = String(value)
    const shown = this.text(written)
    return shown === written ? value : shown
  }

  readonly #replacements = { text: this.text, name: this.text, number: this.#number }

  /** For text that comes in pieces. Text that may begin a needle is held back. */
  readonly streaming = (): StreamingText => {
    if (this.#automaton === undefined) this.#automaton = this.#build()
    return this.#automaton === null ? passThrough : new Scan(this.#automaton)
  }
}

type Credentials = Readonly<Record<string, string>>

/** Scrubbers by the credentials of a request, because a turn searches several times with them. */
const scrubbers = new WeakMap<Credentials, Scrubber>()

const scrubberOf = (credentials: Credentials): Scrubber => {
  const scrubber = scrubbers.get(credentials) ?? new Scrubber(Object.values(credentials))
  scrubbers.set(credentials, scrubber)
  return scrubber
}

/** `text` without the credentials of the request. */
export const withoutCredentials = (
  { toolCredentials }: { readonly toolCredentials?: Credentials | undefined },
  text: string
): string => (toolCredentials === undefined ? text : scrubberOf(toolCredentials).text(text))
