/**
 * Integers in the arguments of tools that a double may not hold, such as long ids. They are strings of all their digits,
 * and become numbers where the JSON Schema of the arguments asks for one.
 */
import { isLongInteger } from "../Json.ts"
import { isList, isObject, type JsonObject, type JsonValue } from "../JsonValue.ts"

/** Maximum number of schemas that are considered for one value. Beyond them, a string stays a string. */
const maxAlternatives = 32

type Schemas = ReadonlyArray<JsonObject>

/** The schemas that a value may have to fit, with those that they combine. */
const alternativesOf = (schemas: ReadonlyArray<JsonValue | undefined>): Schemas => {
  const found = schemas.slice(0, maxAlternatives).filter(isObject)
  for (const { allOf, anyOf, oneOf } of found) {
    for (const inner of [allOf, anyOf, oneOf])
      if (isList(inner)) found.push(...inner.slice(0, maxAlternatives).filter(isObject))
    if (found.length >= maxAlternatives) break
  }
  return found.slice(0, maxAlternatives)
}

const asksForNumber = (schemas: Schemas): boolean => {
  const types = schemas.flatMap(({ type = null }): ReadonlyArray<JsonValue> => (isList(type) ? type : [type]))
  return (types.includes("integer") || types.includes("number")) && !types.includes("string")
}

const schemaOf = (name: string, { additionalProperties, properties }: JsonObject): JsonValue | undefined =>
  isObject(properties) && Object.hasOwn(properties, name) ? properties[name] : additionalProperties

type ToNumber = (digits: string) => JsonValue

const converted = (value: JsonValue, schemas: Schemas, toNumber: ToNumber): JsonValue => {
  if (typeof value === "string")
    return isLongInteger(value) && asksForNumber(schemas) ? toNumber(value) : value
  if (isList(value)) {
    const inner = alternativesOf(schemas.map(({ items }) => items))
    return value.map((item) => converted(item, inner, toNumber))
  }
  return isObject(value) ? convertedMembers(value, schemas, toNumber) : value
}

const convertedMembers = (object: JsonObject, schemas: Schemas, toNumber: ToNumber): JsonObject =>
  Object.fromEntries(
    Object.entries(object).map(([name, member]) => [
      name,
      converted(member, alternativesOf(schemas.map((schema) => schemaOf(name, schema))), toNumber)
    ])
  )

/** `input` with doubles, which may be rounded, where `schema` asks for numbers. */
export const toDoubles = (schema: JsonObject, input: JsonObject): JsonObject =>
  convertedMembers(input, alternativesOf([schema]), Number)

/** {@link toDoubles}, but integers that would be rounded stay strings. */
export const toExactDoubles = (schema: JsonObject, input: JsonObject): JsonObject =>
  convertedMembers(input, alternativesOf([schema]), (digits) => {
    const double = Number(digits)
    return Number.isFinite(double) && BigInt(double) === BigInt(digits) ? double : digits
  })

/** No other text has NUL. */
const mark = "\u0000"

/** `input` with marks where `schema` asks for numbers, for {@link writeMarked}. */
export const withMarks = (schema: JsonObject, input: JsonObject): JsonObject =>
  convertedMembers(input, alternativesOf([schema]), (digits) => `${mark}${digits}${mark}`)

/** JSON with all digits of the integers that {@link withMarks} has marked. */
export const writeMarked = (value: JsonValue): string =>
  JSON.stringify(value).replaceAll(/"\\u0000(-?\d+)\\u0000"/g, "$1")
