/** What a model of the AI SDK thinks, in blocks that go back to it as they came. */
import type { ModelPart } from "../ModelRuntime.ts"
import { ReplyText } from "./ReplyText.ts"
import { isObject, type WireObject } from "./WireJson.ts"

/** Blocks of one reply. */
const maxThoughts = 256

export class AiSdkThoughts {
  readonly #text = new ReplyText("ReasoningDelta")
  /** Blocks that have not ended, by their ids. */
  readonly #open = new Map<string, { text: string; metadata: WireObject }>()
  #count = 0

  /** A part of type `reasoning-start`, `reasoning-delta` or `reasoning-end`. False when there is too much of them. */
  read({ delta, id, providerMetadata, type }: WireObject, parts: Array<ModelPart>): boolean {
    if (typeof id !== "string") return true
    let thought = this.#open.get(id)
    if (thought === undefined) {
      if (type !== "reasoning-start") return true
      this.#count += 1
      thought = { text: "", metadata: {} }
      this.#open.set(id, thought)
    }
    // Of a block that tells twice what it is, such as its signature, the last word counts.
    if (isObject(providerMetadata)) thought.metadata = providerMetadata
    if (type === "reasoning-end") this.#end(id, parts)
    if (type !== "reasoning-delta" || typeof delta !== "string") return this.#count <= maxThoughts
    thought.text += delta
    return this.#text.add(delta, parts)
  }

  /** Ends what has not ended. */
  end(parts: Array<ModelPart>): void {
    this.#text.end(parts)
    for (const id of this.#open.keys()) this.#end(id, parts)
  }

  #end(id: string, parts: Array<ModelPart>): void {
    const thought = this.#open.get(id)
    if (thought === undefined) return
    this.#open.delete(id)
    parts.push({ _tag: "Reasoning", text: thought.text, options: { aiSdk: { ...thought.metadata } } })
  }
}
