import type { JsonObject } from "../../../domain/JsonValue.ts"

/** The JSON object that `text` is; null for any other text. */
export const parsedObject = (text: string): JsonObject | null => {
  try {
    const value: JsonObject | null = JSON.parse(text)
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : null
  } catch {
    return null
  }
}
