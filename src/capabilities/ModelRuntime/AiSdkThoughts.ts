/** Reasoning blocks of a model of the AI SDK, which are returned to it unchanged. */
import type { ModelPart } from "../ModelRuntime.ts"
import { ReplyText } from "./ReplyText.ts"
import { isObject, type WireObject } from "./WireJson.ts"

/** Maximum number of blocks of one reply. */
const maxThoughts = 256

export class AiSdkThoughts {
  readonly #text = new ReplyText("ReasoningDelta")
  /** Open blocks, by id. */
  readonly #open = new Map<string, { text: string; metadata: WireObject }>()
  #count = 0

  /**
   * Reads a part of type `reasoning-start`, `reasoning-delta` or `reasoning-end`. False when the reasoning is too long.
   */
  read({ delta, id, providerMetadata, type }: WireObject, parts: Array<ModelPart>): boolean {
    if (typeof id !== "string") return true
    let thought = this.#open.get(id)
    if (thought === undefined) {
      if (type !== "reasoning-start") return true
      this.#count += 1
      thought = { text: "", metadata: {} }
      this.#open.set(id, thought)
    }
    // Metadata, such as the signature, may come several times. The last one counts.
    if (isObject(providerMetadata)) thought.metadata = providerMetadata
    if (type === "reasoning-end") this.#end(id, parts)
    if (type !== "reasoning-delta" || typeof delta !== "string") return this.#count <= maxThoughts
    thought.text += delta
    return this.#text.add(delta, parts)
  }

  /** Ends all open blocks. */
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
