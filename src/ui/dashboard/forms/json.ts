import type { JsonObject } from "../../../domain/JsonValue.ts"

/** Parses `text` as a JSON object; null if it is anything else. */
export const parseJsonObject = (text: string): JsonObject | null => {
  try {
    const value: JsonObject | null = JSON.parse(text)
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : null
  } catch {
    return null
  }
}
