/** Reasoning blocks of a model of the AI SDK, which are returned to it unchanged. */
import type { ModelPart } from "../ModelRuntime.ts"
import { ReplyText } from "./ReplyText.ts"
import { isObject, type WireObject } from "./WireJson.ts"

/** Maximum number of blocks of one reply. */
const maxBlocks = 256

export class AiSdkReasoning {
  readonly #text = new ReplyText("ReasoningDelta")
  /** Open blocks, by id. */
  readonly #open = new Map<string, { text: string; metadata: WireObject }>()
  #count = 0

  /**
   * Reads a part of type `reasoning-start`, `reasoning-delta` or `reasoning-end`. False when the reasoning is too long.
   */
  read({ delta, id, providerMetadata, type }: WireObject, parts: Array<ModelPart>): boolean {
    if (typeof id !== "string") return true
    let block = this.#open.get(id)
    if (block === undefined) {
      if (type !== "reasoning-start") return true
      this.#count += 1
      block = { text: "", metadata: {} }
      this.#open.set(id, block)
    }
    // Metadata, such as the signature, may come several times. The last one counts.
    if (isObject(providerMetadata)) block.metadata = providerMetadata
    if (type === "reasoning-end") this.#end(id, parts)
    if (type !== "reasoning-delta" || typeof delta !== "string") return this.#count <= maxBlocks
    block.text += delta
    return this.#text.add(delta, parts)
  }

  /** Ends all open blocks. */
  end(parts: Array<ModelPart>): void {
    this.#text.end(parts)
    for (const id of this.#open.keys()) this.#end(id, parts)
  }

  #end(id: string, parts: Array<ModelPart>): void {
    const block = this.#open.get(id)
    if (block === undefined) return
    this.#open.delete(id)
    parts.push({ _tag: "Reasoning", text: block.text, options: { aiSdk: { ...block.metadata } } })
  }
}
