/** Replies that fit a JSON Schema, of providers that can hold the model to it and of those that cannot. */
import * as Stream from "effect/Stream"
import type { JsonObject, JsonValue } from "../../domain/Text.ts"
import type { ModelError, ModelPart, ModelRequest } from "../ModelRuntime.ts"

const isList = (value: JsonValue | undefined): value is ReadonlyArray<JsonValue> => Array.isArray(value)
const isObject = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !isList(value)

/** What strict mode takes; an object has to name all its members there, and admit no others. */
const strictKeywords: ReadonlySet<string> = new Set([
  "type",
  "enum",
  "const",
  "title",
  "description",
  "properties",
  "required",
  "additionalProperties",
  "items",
  "anyOf",
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "minItems",
  "maxItems"
])

const isStrict = (schema: JsonValue): boolean => {
  if (!isObject(schema) || !Object.keys(schema).every((keyword) => strictKeywords.has(keyword))) return false
  const { additionalProperties, anyOf, items, properties, required, type } = schema
  const members = isObject(properties) ? properties : {}
  const named = isList(required) ? required : []
  const isClosed =
    type !== "object" ||
    (additionalProperties === false && Object.keys(members).every((name) => named.includes(name)))
  return (
    isClosed &&
    Object.values(members).every(isStrict) &&
    (items === undefined || isStrict(items)) &&
    (!isList(anyOf) || anyOf.every(isStrict))
  )
}

/** The schema as OpenAI's interfaces take it: strict where they can hold the model to all of it. */
export const formatOf = (schema: JsonObject) => ({ name: "reply", schema, strict: isStrict(schema) })

/** `reply`, and once more without the schema where the provider refuses the request: the prompt asks for it too. */
export const orByInstruction = (
  request: ModelRequest,
  reply: (request: ModelRequest) => Stream.Stream<ModelPart, ModelError>
): Stream.Stream<ModelPart, ModelError> =>
  request.responseSchema === undefined
    ? reply(request)
    : Stream.catchAll(reply(request), (error) => {
        // Nothing of a refused answer has come: a refusal is told by the status.
        const isRefused = error.reason === "Rejected" && error.problem === undefined
        return isRefused ? reply({ ...request, responseSchema: undefined }) : Stream.fail(error)
      })
