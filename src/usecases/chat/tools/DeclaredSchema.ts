/**
 * Schemas of tools' arguments as models get them. A provider refuses the whole request for one schema with a form that
 * JSON Schema allows, and servers of tools may send any.
 */
import { isList, isObject, type JsonObject, type JsonValue } from "../../../domain/JsonValue.ts"

/** Keywords that OpenAI or Anthropic refuse at the top. The arguments are checked by them all the same. */
const refusedAtTop: ReadonlySet<string> = new Set(["allOf", "anyOf", "oneOf", "enum", "not"])
/** Keywords whose values are objects of schemas. */
const schemaMaps: ReadonlySet<string> = new Set(["properties", "patternProperties", "$defs", "definitions"])
/** Keywords whose values are not schemas. */
const valueKeywords: ReadonlySet<string> = new Set(["default", "examples", "enum", "const"])

const isArrayType = (type: JsonValue | undefined): boolean =>
  type === "array" || (isList(type) && type.includes("array"))

const mapMembers = (object: JsonObject, change: (member: JsonValue, name: string) => JsonValue): JsonObject =>
  Object.fromEntries(Object.entries(object).map(([name, member]) => [name, change(member, name)]))

/** OpenAI requires `items` of every array. */
const withItems = (schema: JsonValue): JsonValue => {
  if (isList(schema)) return schema.map(withItems)
  if (!isObject(schema)) return schema
  const members = mapMembers(schema, memberWithItems)
  return isArrayType(schema["type"]) && schema["items"] === undefined ? { ...members, items: {} } : members
}

const memberWithItems = (member: JsonValue, name: string): JsonValue => {
  // Their members have names of the tool, which may be those of keywords.
  if (schemaMaps.has(name) && isObject(member)) return mapMembers(member, withItems)
  return valueKeywords.has(name) ? member : withItems(member)
}

/** OpenAI requires `properties`, also for a tool without parameters. */
export const declaredSchema = (schema: JsonObject): JsonObject => ({
  properties: {},
  ...mapMembers(
    Object.fromEntries(Object.entries(schema).filter(([name]) => !refusedAtTop.has(name))),
    memberWithItems
  )
})
