/** Tool calls as a model streams them: in pieces, and not always valid. */
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import { typeId } from "../../domain/Ids.ts"
import * as Json from "../../domain/Json.ts"
import { JsonObject, sanitize } from "../../domain/Text.ts"
import type { ModelPart } from "../ModelRuntime.ts"

type ToolCall = Extract<ModelPart, { readonly _tag: "ToolCall" }>

/** Maximum number of calls in one reply. */
const maxCalls = 128
/** Maximum total length of ids, names and arguments of the calls of one reply, in UTF-16 units. */
const maxLength = 1024 * 1024

const isJsonObject = Schema.is(JsonObject)

/** For a tool without parameters, models may send an empty text. */
const inputOf = (rawInput: string): JsonObject | null => {
  if (rawInput.trim() === "") return {}
  const parsed = Either.getOrNull(Json.parseExactly(rawInput))
  return isJsonObject(parsed) ? parsed : null
}

/** Never fails. The model gets the error of its call when the tools run. */
export const toolCall = (
  id: string,
  name: string,
  rawInput: string,
  options?: ToolCall["options"]
): ToolCall => ({
  _tag: "ToolCall",
  id: sanitize(id),
  name: sanitize(name),
  input: inputOf(rawInput),
  rawInput: sanitize(rawInput),
  ...(options === undefined ? {} : { options })
})

interface Pending {
  readonly slot: number
  readonly id: string
  name: string
  rawInput: string
  options: ToolCall["options"]
}

/** True when nothing can follow in the arguments. */
const isWhole = ({ rawInput }: Pending): boolean => rawInput.endsWith("}") && inputOf(rawInput) !== null

/** A piece of a call, as in `delta.tool_calls`. */
export interface CallPiece {
  readonly slot: number
  readonly id: string
  readonly name: string
  readonly rawInput: string
  readonly options?: ToolCall["options"]
}

export class ToolCalls {
  readonly #pending: Array<Pending> = []
  #length = 0

  get isEmpty(): boolean {
    return this.#pending.length === 0
  }

  /** False when the calls exceed their limits. */
  add({ slot, id, name, rawInput, options }: CallPiece): boolean {
    const optionsLength = options === undefined ? 0 : JSON.stringify(options).length
    this.#length += id.length + name.length + rawInput.length + optionsLength
    const openCall = this.#pending.findLast((call) => call.slot === slot)
    // Some providers send complete calls that all have slot 0, and some of these send no ids.
    const isNewCall =
      openCall === undefined ||
      (name !== "" && (id === "" ? rawInput.trim() !== "" && isWhole(openCall) : openCall.id !== id))
    if (isNewCall) this.#pending.push({ slot, id, name, rawInput, options })
    else {
      openCall.options = options ?? openCall.options
      openCall.name += name === openCall.name ? "" : name
      openCall.rawInput += rawInput
    }
    return this.#pending.length <= maxCalls && this.#length <= maxLength
  }

  /** The calls in the order in which they began. A call without an id gets one. */
  finished(): ReadonlyArray<ToolCall> {
    return this.#pending.map(({ id, name, options, rawInput }) =>
      toolCall(id === "" ? typeId("call", 0) : id, name, rawInput, options)
    )
  }
}
