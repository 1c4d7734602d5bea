/** Replies that fit a JSON Schema, for providers with and without support for schemas. */
import * as Stream from "effect/Stream"
import { isList, isObject } from "../../domain/JsonValue.ts"
import type { JsonObject, JsonValue } from "../../domain/Text.ts"
import type { ModelError, ModelPart, ModelRequest } from "../ModelRuntime.ts"

/** Keywords of strict mode. There, an object must require all its members and allow no others. */
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
  const requiredNames = isList(required) ? required : []
  const isClosed =
    type !== "object" ||
    (additionalProperties === false && Object.keys(members).every((name) => requiredNames.includes(name)))
  return (
    isClosed &&
    Object.values(members).every(isStrict) &&
    (items === undefined || isStrict(items)) &&
    (!isList(anyOf) || anyOf.every(isStrict))
  )
}

/** The schema for OpenAI's APIs: strict if they support all of it. */
export const formatOf = (schema: JsonObject) => ({ name: "reply", schema, strict: isStrict(schema) })

/** Retries without the schema if the provider refuses the request. The prompt also contains the schema. */
export const withSchemaFallback = (
  request: ModelRequest,
  reply: (request: ModelRequest) => Stream.Stream<ModelPart, ModelError>
): Stream.Stream<ModelPart, ModelError> =>
  request.responseSchema === undefined
    ? reply(request)
    : Stream.catchAll(reply(request), (error) => {
        // A refusal has an error status, so nothing of an answer was received.
        const isRefused = error.reason === "Rejected" && error.problem === undefined
        return isRefused ? reply({ ...request, responseSchema: undefined }) : Stream.fail(error)
      })
