/**
 * Checks a model's arguments against a tool's JSON Schema, so that the model is told what to mend before the tool is called.
 * Whoever writes the schema is a stranger: nothing is compiled, no pattern runs and no reference is followed, so that the
 * work is bounded by the sizes of both. What is not understood is not checked; the tool itself has the last word.
 */
import type { JsonObject, JsonValue } from "../../domain/Text.ts"

/** Most problems that are told at once. */
const most = 8

const isList = (value: JsonValue | undefined): value is ReadonlyArray<JsonValue> => Array.isArray(value)
const isObject = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !isList(value)

const same = (a: JsonValue, b: JsonValue): boolean => {
  if (a === b) return true
  if (isList(a))
    return isList(b) && a.length === b.length && a.every((item, place) => same(item, b[place] ?? null))
  if (!isObject(a) || !isObject(b)) return false
  const names = Object.keys(a)
  return (
    names.length === Object.keys(b).length &&
    names.every((name) => Object.hasOwn(b, name) && same(a[name] ?? null, b[name] ?? null))
  )
}

const is = (type: JsonValue, value: JsonValue): boolean => {
  switch (type) {
    case "null":
      return value === null
    case "array":
      return isList(value)
    case "object":
      return isObject(value)
    case "integer":
      return Number.isInteger(value)
    case "string":
    case "number":
    case "boolean":
      return typeof value === type
    default:
      return true
  }
}

const within = (size: number, least: JsonValue | undefined, greatest: JsonValue | undefined): boolean =>
  (typeof least !== "number" || size >= least) && (typeof greatest !== "number" || size <= greatest)

type Check = (schema: JsonObject, value: JsonValue, at: string) => ReadonlyArray<string>

const type: Check = ({ type: wanted }, value, at) => {
  if (wanted === undefined) return []
  const types = isList(wanted) ? wanted : [wanted]
  return types.some((one) => is(one, value)) ? [] : [`${at} must be of type ${types.join(" or ")}`]
}

const choice: Check = ({ const: only, enum: all }, value, at) => {
  const allowed = only === undefined ? all : [only]
  if (!isList(allowed) || allowed.some((one) => same(one, value))) return []
  return [`${at} must be one of ${JSON.stringify(allowed).slice(0, 500)}`]
}

const number: Check = (schema, value, at) => {
  if (typeof value !== "number") return []
  const { minimum, maximum, exclusiveMinimum: above, exclusiveMaximum: below } = schema
  const inside =
    within(value, minimum, maximum) &&
    (typeof above !== "number" || value > above) &&
    (typeof below !== "number" || value < below)
  return inside ? [] : [`${at} is out of range`]
}

const string: Check = ({ minLength, maxLength }, value, at) =>
  typeof value !== "string" || within([...value].length, minLength, maxLength)
    ? []
    : [`${at} has the wrong length`]

const list: Check = ({ items, minItems, maxItems }, value, at) => {
  if (!isList(value)) return []
  const length = within(value.length, minItems, maxItems) ? [] : [`${at} has the wrong number of items`]
  if (!isObject(items)) return length
  return [...length, ...value.flatMap((item, place) => problems(items, item, `${at}/${place}`))]
}

const object: Check = ({ properties, required, additionalProperties: others }, value, at) => {
  if (!isObject(value)) return []
  const known = isObject(properties) ? properties : {}
  const missing = (isList(required) ? required : []).filter(
    (name) => typeof name === "string" && !Object.hasOwn(value, name)
  )
  const members = Object.entries(value).flatMap(([name, member]) => {
    const schema = Object.hasOwn(known, name) ? known[name] : others
    if (schema === false) return [`${at}/${name} is not expected`]
    return isObject(schema) ? problems(schema, member, `${at}/${name}`) : []
  })
  return [...missing.map((name) => `${at}/${name} is missing`), ...members]
}

const combined: Check = ({ allOf, anyOf, oneOf }, value, at) => {
  const fits = (schema: JsonValue) => !isObject(schema) || problems(schema, value, at).length === 0
  const all = (isList(allOf) ? allOf : []).flatMap((schema) =>
    isObject(schema) ? problems(schema, value, at) : []
  )
  if (isList(anyOf) && !anyOf.some(fits)) return [...all, `${at} fits none of its alternatives`]
  if (isList(oneOf) && oneOf.filter(fits).length !== 1)
    return [...all, `${at} must fit exactly one of its alternatives`]
  return all
}

const checks: ReadonlyArray<Check> = [type, choice, number, string, list, object, combined]

const problems: Check = (schema, value, at) => checks.flatMap((check) => check(schema, value, at))

/** What is wrong with `input`, in words for the model; empty when nothing is. */
export const complaints = (schema: JsonObject, input: JsonObject): ReadonlyArray<string> =>
  problems(schema, input, "").slice(0, most)
