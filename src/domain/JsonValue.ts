/** Types of JSON values, and their guards. */
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
