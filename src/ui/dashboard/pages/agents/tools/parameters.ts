/** A tool's arguments as rows of a form: the subset of JSON Schema that most tools need. */
import type { JsonObject, JsonValue } from "../../../../../domain/Text.ts"

export const argumentTypes = ["string", "number", "integer", "boolean", "choice"] as const
type ArgumentType = (typeof argumentTypes)[number]

export interface Argument {
  readonly name: string
  readonly type: ArgumentType
  readonly description: string
  readonly isRequired: boolean
  /** Of type `choice`: the values, as typed, separated by commas. */
  readonly choices: string
}

export const isObject = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const isText = (value: JsonValue | undefined): value is string => typeof value === "string"

const hasOnly = (object: JsonObject, keys: ReadonlyArray<string>) =>
  Object.keys(object).every((key) => keys.includes(key))

const typeOf = ({ enum: values, type }: JsonObject): ArgumentType | undefined =>
  values === undefined
    ? argumentTypes.find((one) => one === type && one !== "choice")
    : Array.isArray(values) && values.every(isText) && !values.some((value) => /,|^\s|\s$|^$/u.test(value))
      ? "choice"
      : undefined

const argumentOf = (name: string, schema: JsonValue, isRequired: boolean): Argument | null => {
  if (!isObject(schema) || !hasOnly(schema, ["type", "description", "enum"])) return null
  const { description = "", enum: values = [] } = schema
  const type = typeOf(schema)
  if (type === undefined || !isText(description)) return null
  if (type === "choice" && schema["type"] !== undefined && schema["type"] !== "string") return null
  return { name, type, description, isRequired, choices: Array.isArray(values) ? values.join(", ") : "" }
}

/** The rows of `schema`; null if rows cannot express all of it. */
export const argumentsOf = (schema: JsonObject): ReadonlyArray<Argument> | null => {
  const { properties = {}, required = [], type } = schema
  if (!hasOnly(schema, ["type", "properties", "required"]) || type !== "object") return null
  if (!isObject(properties) || !Array.isArray(required)) return null
  if (!required.every((name) => isText(name) && Object.hasOwn(properties, name))) return null
  const rows = Object.entries(properties).map(([name, one]) => argumentOf(name, one, required.includes(name)))
  return rows.every((row) => row !== null) ? rows : null
}

/** The values of a choice. */
export const choicesOf = ({ choices }: Pick<Argument, "choices">): ReadonlyArray<string> => [
  ...new Set(
    choices
      .split(",")
      .map((one) => one.trim())
      .filter((one) => one !== "")
  )
]

/** The schema of the rows. Rows without a name are left out; of two with one name the later one counts. */
export const schemaOf = (rows: ReadonlyArray<Argument>): JsonObject => {
  const named = rows.filter(({ name }) => name.trim() !== "")
  const required = named.filter(({ isRequired }) => isRequired).map(({ name }) => name.trim())
  return {
    type: "object",
    properties: Object.fromEntries(
      named.map((row) => [
        row.name.trim(),
        {
          type: row.type === "choice" ? "string" : row.type,
          ...(row.description === "" ? {} : { description: row.description }),
          ...(row.type === "choice" ? { enum: choicesOf(row) } : {})
        }
      ])
    ),
    ...(required.length === 0 ? {} : { required: [...new Set(required)] })
  }
}
