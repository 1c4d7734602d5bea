/** The text of one reply, or of what is thought before it, cleaned as it streams: what a model writes is stored, and no store holds NUL. */
import { sanitize } from "../../domain/Text.ts"
import type { ModelPart } from "../ModelRuntime.ts"

/** UTF-16 units of one reply: twice what any model writes at a time. */
const maxLength = 1024 * 1024

const endsInHalf = (text: string): boolean => {
  const last = text.charCodeAt(text.length - 1)
  return last >= 0xd800 && last <= 0xdbff
}

export class ReplyText {
  readonly #tag: "TextDelta" | "ReasoningDelta"
  /** The first half of a surrogate pair, whose other half some providers send in the next delta. */
  #half = ""
  #text = ""

  constructor(tag: "TextDelta" | "ReasoningDelta" = "TextDelta") {
    this.#tag = tag
  }

  /** All of it so far. */
  get text(): string {
    return this.#text
  }

  /** False when the reply is over its limit: a provider that never ends must not fill the memory. */
  add(delta: string, parts: Array<ModelPart>): boolean {
    const whole = this.#half === "" ? delta : this.#half + delta
    this.#half = endsInHalf(whole) ? whole.slice(-1) : ""
    this.#push(this.#half === "" ? whole : whole.slice(0, -1), parts)
    return this.#text.length <= maxLength
  }

  /** A half that stayed alone becomes U+FFFD. */
  end(parts: Array<ModelPart>): void {
    this.#push(this.#half, parts)
    this.#half = ""
  }

  #push(text: string, parts: Array<ModelPart>): void {
    const delta = sanitize(text)
    if (delta === "") return
    this.#text += delta
    parts.push({ _tag: this.#tag, delta })
  }
}
