/**
 * Accumulates and cleans the text of one reply, or of its reasoning, as it streams. The text is stored, and stores do
 * not accept NUL.
 */
import { sanitize } from "../../domain/Text.ts"
import type { ModelPart } from "../ModelRuntime.ts"

/** Maximum length of one reply in UTF-16 units: twice what any model writes at once. */
const maxLength = 1024 * 1024

const endsWithHighSurrogate = (text: string): boolean => {
  const last = text.charCodeAt(text.length - 1)
  return last >= 0xd800 && last <= 0xdbff
}

export class ReplyText {
  readonly #tag: "TextDelta" | "ReasoningDelta"
  /** The first half of a surrogate pair. Some providers send the second half in the next delta. */
  #highSurrogate = ""
  #text = ""

  constructor(tag: "TextDelta" | "ReasoningDelta" = "TextDelta") {
    this.#tag = tag
  }

  /** The whole text so far. */
  get text(): string {
    return this.#text
  }

  /**
   * Adds a delta. False when the reply exceeds its limit, because a provider that never ends must not fill the memory.
   */
  add(delta: string, parts: Array<ModelPart>): boolean {
    const whole = this.#highSurrogate === "" ? delta : this.#highSurrogate + delta
    this.#highSurrogate = endsWithHighSurrogate(whole) ? whole.slice(-1) : ""
    this.#push(this.#highSurrogate === "" ? whole : whole.slice(0, -1), parts)
    return this.#text.length <= maxLength
  }

  /** A remaining half becomes U+FFFD. */
  end(parts: Array<ModelPart>): void {
    this.#push(this.#highSurrogate, parts)
    this.#highSurrogate = ""
  }

  #push(text: string, parts: Array<ModelPart>): void {
    const delta = sanitize(text)
    if (delta === "") return
    this.#text += delta
    parts.push({ _tag: this.#tag, delta })
  }
}
