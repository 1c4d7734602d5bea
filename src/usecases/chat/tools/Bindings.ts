/** Resolves a tool's bindings to values of `toolContext`. */
import * as Either from "effect/Either"
import type { BoundValue } from "../../../capabilities/ToolSources.ts"
import { isList } from "../../../domain/JsonValue.ts"
import type { Binding } from "../../../domain/agents/Tool.ts"
import { type ToolFailure, toolFailure } from "../../../domain/agents/ToolFailure.ts"
import { segmentsOf } from "../../../domain/Json.ts"
import type { JsonObject, JsonValue } from "../../../domain/Text.ts"

const member = (value: JsonValue | undefined, name: string): JsonValue | undefined => {
  if (typeof value !== "object" || value === null) return undefined
  if (isList(value)) return /^\d{1,6}$/.test(name) ? value[Number(name)] : undefined
  return Object.hasOwn(value, name) ? value[name] : undefined
}

/** The bound values. An absent value or null counts as missing. */
export const resolve = (
  bindings: ReadonlyArray<Binding>,
  context: JsonObject | undefined
): Either.Either<ReadonlyArray<BoundValue>, ToolFailure> =>
  Either.all(
    bindings.map(({ from, to }) => {
      const value = segmentsOf(from).reduce<JsonValue | undefined>(member, context)
      return value === undefined || value === null
        ? Either.left(toolFailure("BINDING_REQUIRED", from))
        : Either.right({ to, value })
    })
  )

/** Every string and number in `value`. */
export const scalarValues = (value: JsonValue): ReadonlyArray<string> => {
  if (typeof value === "string") return [value]
  if (typeof value === "number") return [String(value)]
  if (typeof value !== "object" || value === null) return []
  return Object.values(value).flatMap(scalarValues)
}
