/** JSON values: their types, guards, and a mapping over their parts. */
export type JsonValue =
  string | number | boolean | null | ReadonlyArray<JsonValue> | { readonly [key: string]: JsonValue }

export interface JsonObject {
  readonly [key: string]: JsonValue
}

export const isList = (value: JsonValue | undefined): value is ReadonlyArray<JsonValue> =>
  Array.isArray(value)

export const isObject = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !isList(value)

/** The items of an array; none for any other value. */
export const itemsOf = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

/** Functions for the strings, the member names and the numbers in a value. By default, numbers stay as they are. */
interface JsonMapping {
  readonly text: (text: string) => string
  readonly name: (name: string) => string
  readonly number?: (value: number) => JsonValue
}

/** `value` with every string, member name and number in it mapped. */
export const mapJson = (value: JsonValue, mapping: JsonMapping): JsonValue => {
  if (typeof value === "string") return mapping.text(value)
  if (typeof value === "number" && mapping.number !== undefined) return mapping.number(value)
  if (isList(value)) return value.map((item) => mapJson(item, mapping))
  return isObject(value) ? mapJsonObject(value, mapping) : value
}

export const mapJsonObject = (object: JsonObject, mapping: JsonMapping): JsonObject =>
  Object.fromEntries(
    Object.entries(object).map(([name, member]) => [mapping.name(name), mapJson(member, mapping)])
  )
