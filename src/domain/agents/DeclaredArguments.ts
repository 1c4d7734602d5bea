/**
 * The arguments that an HTTP tool declares. A model may pass others, also on behalf of a customer, and servers often read
 * members that their clients do not know, such as filters.
 */
import { isList, isObject, type JsonObject, type JsonValue } from "../JsonValue.ts"
import { placeholdersOf, type ToolDefinition } from "./Tool.ts"

/** The schemas of the same object: this one, and those that it combines. */
const schemasOf = (schema: JsonValue | undefined): ReadonlyArray<JsonObject> => {
  if (!isObject(schema)) return []
  const { allOf, anyOf, dependentSchemas, else: otherwise, if: condition, oneOf, then } = schema
  const lists = [allOf, anyOf, oneOf].flatMap((list) => (isList(list) ? list : []))
  const dependent = isObject(dependentSchemas) ? Object.values(dependentSchemas) : []
  return [schema, ...[...lists, ...dependent, condition, then, otherwise].flatMap(schemasOf)]
}

/** Whether further names are allowed by intention, or named where they are not looked up. */
const isOpen = ({ $ref, additionalProperties, patternProperties }: JsonObject): boolean =>
  additionalProperties === true ||
  isObject(additionalProperties) ||
  patternProperties !== undefined ||
  $ref !== undefined

const namesIn = ({ properties, required }: JsonObject): ReadonlyArray<JsonValue> => [
  ...(isObject(properties) ? Object.keys(properties) : []),
  ...(isList(required) ? required : [])
]

/**
 * The members of `input` that the parameters or the address name. All of them if the parameters allow others explicitly,
 * which differs from the default of JSON Schema. Also all of them if the parameters name none, because such a tool was
 * described without its arguments.
 */
export const declaredArguments = (
  { http, parameters }: Pick<ToolDefinition, "http" | "parameters">,
  input: JsonObject
): JsonObject => {
  const schemas = schemasOf(parameters)
  const named = schemas.flatMap(namesIn)
  if (named.length === 0 || schemas.some(isOpen)) return input
  const names = new Set([...named, ...placeholdersOf(http?.url ?? "")])
  return Object.fromEntries(Object.entries(input).filter(([name]) => names.has(name)))
}
