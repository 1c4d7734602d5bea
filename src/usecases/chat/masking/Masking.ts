/**
 * The personal data of one turn. Values are replaced by placeholders such as `[email-1]` before anything is sent, and
 * restored in the model's text. Placeholders are made anew for each turn from its texts, and are not stored. A text
 * that looks like a placeholder is itself replaced by one: a user who writes `[email-1]` gets that text back, and no
 * other user's value.
 */
import * as Either from "effect/Either"
import { isList, mapJsonObject } from "../../../domain/JsonValue.ts"
import { literalKind, type Masking as MaskingSettings } from "../../../domain/agents/Masking.ts"
import { type Matcher, parse } from "../../../domain/agents/MaskingPattern.ts"
import type { JsonObject, JsonValue } from "../../../domain/Text.ts"
import type { StreamingText } from "../StreamingText.ts"
import { digitsIn, findNumbers, searchNumbers } from "./Detect.ts"
import type { DetectedValue } from "./DetectedValue.ts"
import { findEmails } from "./Emails.ts"
import { KnownNumbers } from "./KnownNumbers.ts"
import { ValueFinder } from "./ValueFinder.ts"

/** Maximum characters between the brackets of a placeholder, including blanks that a model may add. */
const maxInner = 48
const bracketed = /\[([^[\]]{1,48})\]/g

/** Instruction about placeholders for the model. The number 0 is never used. */
export const rule = `Personal data is replaced by placeholders in square brackets, a kind and a number, as in [email-0]. Each stands for one value
that you do not see. Where the value belongs into your reply or into a call, write its placeholder exactly as it stands; the reader
sees the value. Never make up a placeholder, and do not explain them. They are no sources: do not cite them.`

/** Normal form of a placeholder that a model changed: other case, blanks, another dash. */
const normalForm = (inner: string): string =>
  inner
    .trimStart()
    .toLowerCase()
    .replaceAll(/[\s_\u2010-\u2015-]+/g, "-")

const keyOf = (inner: string): string => normalForm(inner.trim())

/** Merges overlapping values, so that no part of one remains. */
const merged = (found: ReadonlyArray<DetectedValue>): ReadonlyArray<DetectedValue> => {
  const spans: Array<DetectedValue> = []
  const sorted = found.toSorted((one, other) => one.start - other.start || other.end - one.end)
  for (const span of sorted) {
    const last = spans.at(-1)
    if (last === undefined || last.end <= span.start) {
      spans.push(span)
      continue
    }
    const isLonger = span.end - span.start > last.end - last.start
    const kind = isLonger ? span.kind : last.kind
    spans[spans.length - 1] = { kind, start: last.start, end: Math.max(last.end, span.end) }
  }
  return spans
}

/** Selects texts that look like placeholders and are left as they are. */
type Keeps = (key: string) => boolean
const keepsNone: Keeps = () => false

export class Masking {
  readonly #settings: MaskingSettings
  readonly #patterns: ReadonlyArray<{ readonly name: string; readonly matcher: Matcher }>
  readonly #kinds: ReadonlySet<string>
  /** Placeholders by value, and values by placeholder. */
  readonly #placeholders = new Map<string, string>()
  readonly #values = new Map<string, string>()
  /** The last number used for each kind. */
  readonly #lastNumbers = new Map<string, number>()
  readonly #counts = new Map<string, number>()
  readonly #known = new KnownNumbers()
  readonly #finder = new ValueFinder()

  constructor(settings: MaskingSettings) {
    this.#settings = settings
    this.#patterns = settings.patterns.flatMap(({ name, pattern }) =>
      Either.match(parse(pattern), { onLeft: () => [], onRight: (matcher) => [{ name, matcher }] })
    )
    this.#kinds = new Set([...settings.kinds, ...this.#patterns.map(({ name }) => name), literalKind])
  }

  /** Number of masked values, by kind. */
  get counts(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#counts)
  }

  /** True when the tool receives unmasked values. */
  trusts(tool: string): boolean {
    return this.#settings.tools.includes(tool)
  }

  /** Finds numbers that this text shows to be personal data, so that other texts without that context mask them too. */
  learn(text: string): void {
    for (const _ of this.learnInSteps(text));
  }

  /** {@link learn} in steps. After each the caller may let other work run. */
  *learnInSteps(text: string, lead = ""): Generator<void, void> {
    const found: Array<DetectedValue> = []
    for (const value of searchNumbers(text, lead, this.#numberSearch())) {
      if (value === null) yield
      else found.push(value)
    }
    this.#keep(text, found)
  }

  /** {@link learnInSteps} of every text in `value`. */
  *learnJsonInSteps(value: JsonValue, lead = ""): Generator<void, void> {
    if (typeof value === "string" || typeof value === "number") yield* this.learnInSteps(String(value), lead)
    else if (typeof value === "object" && value !== null)
      for (const [name, member] of Object.entries(value))
        yield* this.learnJsonInSteps(member, isList(value) ? lead : `${name}: `)
  }

  /** `text` with placeholders. `lead` is text before it that may say what a number is. */
  readonly mask = (text: string, lead = "", keeps: Keeps = keepsNone): string => {
    return this.#replaced(text, this.#all(text, keeps, this.#learned(text, lead)))
  }

  /** The first `length` UTF-16 units of `text`, masked. The rest shows which values begin in them. */
  readonly maskBeginning = (text: string, length: number, keeps: Keeps = keepsNone): string => {
    const found = this.#all(text, keeps, this.#learned(text, ""))
    return this.#replaced(text, found, length).toWellFormed()
  }

  /** Masks the agent's own texts for the model; unchanged unless sources are masked. */
  readonly maskSource = (text: string): string =>
    this.#settings.sources ? this.mask(text) : this.escapePlaceholders(text)

  /** Replaces only texts that look like placeholders. */
  readonly escapePlaceholders = (text: string): string =>
    this.#replaced(text, this.#literalsIn(text, keepsNone))

  /**
   * Replaces only values that already have a placeholder. The text around them does not matter: the model may have
   * written a placeholder where the value is not recognised.
   */
  readonly maskKnown = (text: string): string =>
    this.#replaced(text, [
      ...this.#all(text, keepsNone, this.#numbersIn(text, "")).filter(({ end, start }) => {
        const value = text.slice(start, end)
        return this.#placeholders.has(value) || this.#known.has(digitsIn(value))
      }),
      ...this.#finder.find(text)
    ])

  /** Masks every text in `value`, including property names. A number that is personal data becomes a string. */
  readonly maskJson = (value: JsonValue, keeps: Keeps = keepsNone, lead = ""): JsonValue => {
    if (typeof value === "string") return this.mask(value, lead, keeps)
    if (typeof value === "number") {
      const written = String(value)
      const shown = this.mask(written, lead, keeps)
      return shown === written ? value : shown
    }
    if (typeof value !== "object" || value === null) return value
    return isList(value)
      ? value.map((item) => this.maskJson(item, keeps, lead))
      : Object.fromEntries(
          Object.entries(value).map(([name, member]) => [
            this.mask(name, "", keeps),
            this.maskJson(member, keeps, `${name}: `)
          ])
        )
  }

  /** Masks a tool's answer. Placeholders that the tool received keep their meaning. */
  readonly maskToolAnswer = (input: JsonObject | null, value: JsonValue): JsonValue => {
    const received = new Set<string>()
    for (const [, inner = ""] of JSON.stringify(input ?? {}).matchAll(bracketed)) received.add(keyOf(inner))
    return this.maskJson(value, (key) => received.has(key))
  }

  /** Masks a recorded tool answer in a replay. Old placeholders stay, and no value gets one of them. */
  readonly maskRecordedAnswer = (value: JsonValue): JsonValue =>
    this.maskJson(value, (key) => {
      const at = key.lastIndexOf("-")
      const kind = key.slice(0, at)
      this.#lastNumbers.set(kind, Math.max(this.#lastNumbers.get(kind) ?? 0, Number(key.slice(at + 1))))
      return true
    })

  /** The search query: without the values, or with their kinds as words where nothing else is left. */
  readonly searchable = (text: string, length = text.length): string => {
    const masked = this.maskBeginning(text, length, () => true)
    const without = (instead: (kind: string) => string) =>
      masked
        .replaceAll(bracketed, (whole, inner: string) => {
          const key = keyOf(inner)
          return this.#isPlaceholder(key) ? instead(key.slice(0, key.lastIndexOf("-"))) : whole
        })
        .replaceAll(/ {2,}/g, " ")
        .trim()
    const bare = without(() => "")
    return /[\p{L}\p{N}]/u.test(bare) ? bare : without((kind) => kind)
  }

  /** A passage, masked for comparison with statements that have gone through {@link maskKnown}. */
  readonly maskPassage = (text: string): string =>
    this.#settings.sources ? this.mask(text) : this.maskKnown(text)

  /** The text with every value and placeholder replaced by its kind, for comparison. */
  readonly kindsOnly = (text: string): string =>
    this.mask(text, "", () => true).replaceAll(bracketed, (whole, inner: string) => {
      const key = keyOf(inner)
      return this.#isPlaceholder(key) ? `[${key.slice(0, key.lastIndexOf("-"))}]` : whole
    })

  /** The model's text with the values restored. */
  readonly restore = (text: string): string =>
    text.replaceAll(bracketed, (whole, inner: string) => this.#values.get(keyOf(inner)) ?? whole)

  readonly restoreObject = (value: JsonObject): JsonObject =>
    mapJsonObject(value, { text: this.restore, name: this.restore })

  /** {@link restore} for a text that comes in pieces. Text that may begin a placeholder is held back. */
  readonly restoringStream = (): StreamingText => {
    let held = ""
    return {
      push: (delta) => {
        const text = held + delta
        const open = text.lastIndexOf("[")
        const rest = open < 0 ? "" : text.slice(open)
        const waits = rest !== "" && !rest.includes("]") && this.#mayBegin(rest.slice(1))
        held = waits ? rest : ""
        return this.restore(waits ? text.slice(0, open) : text)
      },
      flush: () => {
        const rest = held
        held = ""
        return rest
      }
    }
  }

  #mayBegin(inner: string): boolean {
    if (inner.length > maxInner) return false
    const begun = normalForm(inner)
    const at = /-\d*-?$/.exec(begun)?.index
    if (at !== undefined && this.#kinds.has(begun.slice(0, at))) return true
    return [...this.#kinds].some((kind) => kind.startsWith(begun))
  }

  #isPlaceholder(key: string): boolean {
    const at = key.lastIndexOf("-")
    return at > 0 && this.#kinds.has(key.slice(0, at)) && /^\d+$/.test(key.slice(at + 1))
  }

  #numberSearch() {
    const { kinds } = this.#settings
    return { cards: kinds.includes("card"), phones: kinds.includes("phone"), known: this.#known }
  }

  #numbersIn(text: string, lead: string): ReadonlyArray<DetectedValue> {
    return findNumbers(text, lead, this.#numberSearch())
  }

  #keep(text: string, found: ReadonlyArray<DetectedValue>): void {
    for (const { end, kind, start } of found) this.#known.add(digitsIn(text.slice(start, end)), kind)
  }

  /** The numbers in a text, including those known only after it was read. */
  #learned(text: string, lead: string): ReadonlyArray<DetectedValue> {
    const before = this.#known.size
    const found = this.#numbersIn(text, lead)
    this.#keep(text, found)
    return this.#known.size === before ? found : this.#numbersIn(text, lead)
  }

  #literalsIn(text: string, keeps: Keeps): ReadonlyArray<DetectedValue> {
    const found: Array<DetectedValue> = []
    for (const { 0: whole, 1: inner = "", index } of text.matchAll(bracketed)) {
      const key = keyOf(inner)
      if (this.#isPlaceholder(key) && !keeps(key))
        found.push({ kind: literalKind, start: index, end: index + whole.length })
    }
    return found
  }

  #patternsIn(text: string): ReadonlyArray<DetectedValue> {
    const found: Array<DetectedValue> = []
    for (const { matcher, name } of this.#patterns) {
      for (let from = 0; ;) {
        const span = matcher.find(text, from)
        if (span === null) break
        found.push({ kind: name, ...span })
        from = span.end
      }
    }
    return found
  }

  #all(text: string, keeps: Keeps, found: ReadonlyArray<DetectedValue>): ReadonlyArray<DetectedValue> {
    return [
      ...(this.#settings.kinds.includes("email") ? findEmails(text) : []),
      ...found,
      ...this.#patternsIn(text),
      ...this.#literalsIn(text, keeps)
    ]
  }

  /** The first `length` UTF-16 units of `text` with placeholders. A value that begins in them is replaced as a whole. */
  #replaced(text: string, found: ReadonlyArray<DetectedValue>, length = text.length): string {
    let shown = ""
    let at = 0
    for (const { end, kind, start } of merged(found)) {
      if (start >= length) break
      shown += text.slice(at, start) + this.#placeholderOf(kind, text.slice(start, end))
      at = end
    }
    return shown + text.slice(at, Math.max(at, length))
  }

  #placeholderOf(kind: string, value: string): string {
    const existing = this.#placeholders.get(value)
    if (existing !== undefined) return existing
    const number = (this.#lastNumbers.get(kind) ?? 0) + 1
    this.#lastNumbers.set(kind, number)
    if (kind !== literalKind) this.#counts.set(kind, (this.#counts.get(kind) ?? 0) + 1)
    const placeholder = `[${kind}-${number}]`
    this.#placeholders.set(value, placeholder)
    this.#values.set(`${kind}-${number}`, value)
    if (kind !== literalKind) this.#finder.add(kind, value)
    return placeholder
  }
}
