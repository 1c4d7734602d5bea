/**
 * Checks a model's arguments against a tool's JSON Schema, so that the model learns what to correct before the tool is
 * called. Schemas are not trusted: nothing is compiled, no pattern is run, no reference is followed, and the work is
 * bounded by the size of schema and arguments. Unknown keywords are not checked; the tool decides.
 */
import { isList, isObject } from "../../../domain/JsonValue.ts"
import type { JsonObject, JsonValue } from "../../../domain/Text.ts"
import { WorkBudget } from "../../../concurrency/WorkBudget.ts"

/** Maximum problems reported at once. */
const maxProblems = 8
/**
 * Comparisons allowed for each value in the schema or the arguments. When they are used up, the rest is not checked.
 */
const stepsPerValue = 256

/** Number of values in `value`, including itself. */
const countOf = (value: JsonValue): number => {
  if (typeof value !== "object" || value === null) return 1
  let count = 1
  for (const member of Object.values(value)) count += countOf(member)
  return count
}

const isSame = (a: JsonValue, b: JsonValue, work: WorkBudget): boolean => {
  work.spend(1)
  if (a === b) return true
  if (isList(a))
    return (
      isList(b) && a.length === b.length && a.every((item, index) => isSame(item, b[index] ?? null, work))
    )
  if (!isObject(a) || !isObject(b)) return false
  const names = Object.keys(a)
  return (
    names.length === Object.keys(b).length &&
    names.every((name) => Object.hasOwn(b, name) && isSame(a[name] ?? null, b[name] ?? null, work))
  )
}

const isOfType = (type: JsonValue, value: JsonValue): boolean => {
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

const isInRange = (size: number, least: JsonValue | undefined, greatest: JsonValue | undefined): boolean =>
  (typeof least !== "number" || size >= least) && (typeof greatest !== "number" || size <= greatest)

/** The message is built only when it is reported. */
type Problem = () => string
type Check = (schema: JsonObject, value: JsonValue, at: string, work: WorkBudget) => Iterable<Problem>

const type: Check = ({ type: wanted }, value, at, work) => {
  if (wanted === undefined) return []
  const types = isList(wanted) ? wanted : [wanted]
  work.spend(types.length)
  return types.some((one) => isOfType(one, value))
    ? []
    : [() => `${at} must be of type ${types.join(" or ")}`]
}

const choice: Check = ({ const: only, enum: all }, value, at, work) => {
  const allowed = only === undefined ? all : [only]
  if (!isList(allowed) || allowed.some((one) => work.isSpent || isSame(one, value, work))) return []
  return [() => `${at} must be one of ${JSON.stringify(allowed).slice(0, 500)}`]
}

const number: Check = (schema, value, at) => {
  if (typeof value !== "number") return []
  const { minimum, maximum, exclusiveMinimum: above, exclusiveMaximum: below } = schema
  const isInside =
    isInRange(value, minimum, maximum) &&
    (typeof above !== "number" || value > above) &&
    (typeof below !== "number" || value < below)
  return isInside ? [] : [() => `${at} is out of range`]
}

const string: Check = ({ minLength, maxLength }, value, at, work) => {
  if (typeof value !== "string" || (minLength === undefined && maxLength === undefined)) return []
  // A character may be two UTF-16 units.
  work.spend(value.length / stepsPerValue)
  return isInRange([...value].length, minLength, maxLength) ? [] : [() => `${at} has the wrong length`]
}

const list: Check = function* ({ items, minItems, maxItems }, value, at, work) {
  if (!isList(value)) return
  if (!isInRange(value.length, minItems, maxItems)) yield () => `${at} has the wrong number of items`
  if (!isObject(items)) return
  for (const [index, item] of value.entries()) yield* problems(items, item, `${at}/${index}`, work)
}

const object: Check = function* ({ properties, required, additionalProperties: others }, value, at, work) {
  if (!isObject(value)) return
  const known = isObject(properties) ? properties : {}
  for (const name of isList(required) ? required : []) {
    work.spend(1)
    if (typeof name === "string" && !Object.hasOwn(value, name)) yield () => `${at}/${name} is missing`
  }
  for (const [name, member] of Object.entries(value)) {
    const schema = Object.hasOwn(known, name) ? known[name] : others
    if (schema === false) yield () => `${at}/${name} is not expected`
    else if (isObject(schema)) yield* problems(schema, member, `${at}/${name}`, work)
  }
}

const combined: Check = function* ({ allOf, anyOf, oneOf }, value, at, work) {
  const fits = (schema: JsonValue) =>
    !isObject(schema) || problems(schema, value, at, work)[Symbol.iterator]().next().done === true
  for (const schema of isList(allOf) ? allOf : [])
    if (isObject(schema)) yield* problems(schema, value, at, work)
  const subject = at === "" ? "the object" : at
  // Models do not see the alternatives at the top.
  const shown = (alternatives: JsonValue) =>
    at === "" ? `: ${JSON.stringify(alternatives).slice(0, 500)}` : ""
  if (isList(anyOf) && !anyOf.some(fits))
    yield () => `${subject} fits none of its alternatives${shown(anyOf)}`
  else if (isList(oneOf) && oneOf.filter(fits).length !== 1 && !work.isSpent)
    yield () => `${subject} must fit exactly one of its alternatives${shown(oneOf)}`
}

const checks: ReadonlyArray<Check> = [type, choice, number, string, list, object, combined]

const problems: Check = function* (schema, value, at, work) {
  for (const check of checks) {
    if (work.isSpent) return
    work.spend(1)
    yield* check(schema, value, at, work)
  }
}

/** Problems of `input`, in words for the model; empty when it is valid. */
export const validationProblems = (schema: JsonObject, input: JsonObject): ReadonlyArray<string> => {
  const work = new WorkBudget()
  work.allow((countOf(schema) + countOf(input)) * stepsPerValue)
  const listed: Array<string> = []
  for (const problem of problems(schema, input, "", work)) {
    listed.push(problem())
    if (listed.length === maxProblems) break
  }
  return listed
}
