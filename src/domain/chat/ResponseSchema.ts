/**
 * JSON Schemas for replies. Callers write them, so size and depth are bounded. A keyword that would not be checked is
 * refused, so that an accepted reply fits the whole schema.
 */
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import type { Issue } from "../Errors.ts"
import { isList, isObject } from "../JsonValue.ts"
import { JsonObject, type JsonValue } from "../Text.ts"

/** Maximum length of the schema as JSON, with references resolved. */
const maxSchemaLength = 32 * 1024
/** Maximum depth of nested schemas. */
const maxSchemaDepth = 16

const isText = (value: JsonValue): value is string => typeof value === "string"
const isNumber = (value: JsonValue) => typeof value === "number"
const isSize = (value: JsonValue) => typeof value === "number" && Number.isInteger(value) && value >= 0

const types: ReadonlySet<JsonValue> = new Set([
  "null",
  "boolean",
  "object",
  "array",
  "number",
  "integer",
  "string"
])

/** Allowed values of keywords that contain no schemas, and the text for an error. */
const plainKeywords: Readonly<
  Record<string, readonly [holds: (value: JsonValue) => boolean, expected: string]>
> = {
  type: [
    (value) => (isList(value) ? value.length > 0 && value.every((one) => types.has(one)) : types.has(value)),
    "Expected a type of JSON Schema, or a list of them"
  ],
  enum: [(value) => isList(value) && value.length > 0, "Expected a list that is not empty"],
  const: [() => true, ""],
  required: [(value) => isList(value) && value.every(isText), "Expected a list of names"],
  minimum: [isNumber, "Expected a number"],
  maximum: [isNumber, "Expected a number"],
  exclusiveMinimum: [isNumber, "Expected a number"],
  exclusiveMaximum: [isNumber, "Expected a number"],
  minLength: [isSize, "Expected an integer from 0"],
  maxLength: [isSize, "Expected an integer from 0"],
  minItems: [isSize, "Expected an integer from 0"],
  maxItems: [isSize, "Expected an integer from 0"],
  title: [isText, "Expected a string"],
  description: [isText, "Expected a string"],
  format: [isText, "Expected a string"],
  default: [() => true, ""],
  examples: [isList, "Expected a list"]
}

/** Keywords that are dropped when references are resolved. */
const droppedKeywords: ReadonlySet<string> = new Set([
  "$schema",
  "$id",
  "$anchor",
  "$comment",
  "$defs",
  "definitions"
])

/**
 * Keywords that are refused because they would not be checked. An error may name them; any other name is the caller's
 * input.
 */
const refusedKeywords: ReadonlySet<string> = new Set([
  "pattern",
  "patternProperties",
  "propertyNames",
  "minProperties",
  "maxProperties",
  "multipleOf",
  "uniqueItems",
  "prefixItems",
  "additionalItems",
  "contains",
  "minContains",
  "maxContains",
  "dependentRequired",
  "dependentSchemas",
  "unevaluatedItems",
  "unevaluatedProperties",
  "not",
  "if",
  "then",
  "else",
  "nullable",
  "$dynamicRef",
  "$recursiveRef"
])

/** Position of a schema: its path, the references that led to it, and its depth. */
interface SchemaPosition {
  readonly path: Issue["path"]
  readonly via: ReadonlyArray<string>
  readonly depth: number
}

type Read<A> = Either.Either<A, Issue>

const innerPosition = (position: SchemaPosition, name: string | number): SchemaPosition => ({
  ...position,
  path: [...position.path, name]
})

const problem = ({ path }: SchemaPosition, message: string): Read<never> => Either.left({ path, message })

/** Reads one schema. Its length limit is shared by all of its parts. */
class Reader {
  private readonly definitions: ReadonlyMap<string, JsonValue>
  private remainingLength = maxSchemaLength

  constructor(root: JsonObject) {
    const named = ["$defs", "definitions"].flatMap((group) => {
      const schemas = root[group]
      return isObject(schemas)
        ? Object.entries(schemas).map(([name, schema]) => [`#/${group}/${name}`, schema] as const)
        : []
    })
    this.definitions = new Map(named)
  }

  read(schema: JsonValue, around: SchemaPosition): Read<JsonObject> {
    if (!isObject(schema)) return problem(around, "Expected a JSON Schema as an object")
    const place = { ...around, depth: around.depth + 1 }
    if (place.depth > maxSchemaDepth) {
      return problem(place, `Expected at most ${maxSchemaDepth} schemas within each other`)
    }
    const parts: Array<JsonObject> = []
    for (const [keyword, value] of Object.entries(schema)) {
      if (droppedKeywords.has(keyword)) continue
      const part = this.keyword(keyword, value, place)
      if (Either.isLeft(part)) return Either.left(part.left)
      parts.push(part.right)
    }
    // A reference's target and the keywords beside it may contain the same keyword. Both apply.
    const names = parts.flatMap((part) => Object.keys(part))
    const isPlain = new Set(names).size === names.length
    return Either.right(isPlain ? Object.fromEntries(parts.flatMap(Object.entries)) : { allOf: parts })
  }

  /** Reads `keyword`; a reference is read as its target. */
  private keyword(keyword: string, value: JsonValue, place: SchemaPosition): Read<JsonObject> {
    const at = innerPosition(place, keyword)
    const known = Object.hasOwn(plainKeywords, keyword) ? plainKeywords[keyword] : undefined
    const isWithinLimit = this.fits(known === undefined ? keyword : keyword + JSON.stringify(value))
    if (!isWithinLimit) return problem(at, "The schema is too long")
    if (known !== undefined) {
      const [holds, expected] = known
      return holds(value) ? Either.right({ [keyword]: value }) : problem(at, expected)
    }
    const named = (read: Read<JsonValue>) => Either.map(read, (schemas) => ({ [keyword]: schemas }))
    switch (keyword) {
      case "$ref":
        return this.reference(value, at)
      case "items":
        return named(this.read(value, at))
      case "additionalProperties":
        return named(typeof value === "boolean" ? Either.right(value) : this.read(value, at))
      case "properties":
        return isObject(value) ? named(this.members(value, at)) : problem(at, "Expected an object of schemas")
      case "allOf":
      case "anyOf":
      case "oneOf":
        return isList(value) && value.length > 0
          ? named(Either.all(value.map((one, index) => this.read(one, innerPosition(at, index)))))
          : problem(at, "Expected a list of schemas")
      default:
        return refusedKeywords.has(keyword)
          ? problem(at, `The keyword ${keyword} is not supported`)
          : problem(place, "It has a keyword that is not one of JSON Schema")
    }
  }

  private members(schemas: JsonObject, at: SchemaPosition): Read<JsonObject> {
    const read: Array<readonly [string, JsonValue]> = []
    for (const [name, schema] of Object.entries(schemas)) {
      if (!this.fits(name)) return problem(at, "The schema is too long")
      const member = this.read(schema, innerPosition(at, name))
      if (Either.isLeft(member)) return Either.left(member.left)
      read.push([name, member.right])
    }
    return Either.right(Object.fromEntries(read))
  }

  private reference(value: JsonValue, at: SchemaPosition): Read<JsonObject> {
    const target = isText(value) ? this.definitions.get(value) : undefined
    if (!isText(value) || target === undefined) {
      return problem(at, "Expected the reference of a schema in $defs")
    }
    return at.via.includes(value)
      ? problem(at, "A schema that contains itself is not supported")
      : this.read(target, { ...at, via: [...at.via, value] })
  }

  /** Counts `text` against the length limit. False if the schema is too long. */
  private fits(text: string): boolean {
    this.remainingLength -= text.length + 6
    return this.remainingLength >= 0
  }
}

const notAnObject: Issue = { path: ["type"], message: 'Expected "object": a reply is an object' }

const isOfObject = (schema: JsonObject): boolean => schema["type"] === "object"

/** `schema` without references, or its first error. Schemas with a name are a reference at the top. */
export const resolved = (schema: JsonObject): Read<JsonObject> =>
  isOfObject(schema) || Object.hasOwn(schema, "$ref")
    ? Either.filterOrLeft(
        new Reader(schema).read(schema, { path: [], via: [], depth: 0 }),
        isOfObject,
        () => notAnObject
      )
    : Either.left(notAnObject)

/** The JSON Schema that a reply has to fit, of type `object`, up to 32 KiB. */
export const ResponseSchema = JsonObject.pipe(
  Schema.filter((schema) => Either.match(resolved(schema), { onLeft: (issue) => issue, onRight: () => true }))
)
