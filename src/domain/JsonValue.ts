/** JSON values: their types, guards, and the replacement of their parts. */
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

/** What replaces the texts, the names of members and the numbers of a value; numbers stay by default. */
interface Replacements {
  readonly text: (text: string) => string
  readonly name: (name: string) => string
  readonly number?: (value: number) => JsonValue
}

export const replaced = (value: JsonValue, by: Replacements): JsonValue => {
  if (typeof value === "string") return by.text(value)
  if (typeof value === "number" && by.number !== undefined) return by.number(value)
  if (isList(value)) return value.map((item) => replaced(item, by))
  return isObject(value) ? replacedObject(value, by) : value
}

export const replacedObject = (object: JsonObject, by: Replacements): JsonObject =>
  Object.fromEntries(Object.entries(object).map(([name, member]) => [by.name(name), replaced(member, by)]))
