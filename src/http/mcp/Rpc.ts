/** JSON-RPC 2.0 as the Model Context Protocol uses it. */
import * as Schema from "effect/Schema"
import { JsonObject } from "../../domain/Text.ts"

/** Versions that are spoken, newest first; they differ in nothing that is used here. */
export const versions = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] as const

export const codes = { parse: -32_700, invalid: -32_600, noMethod: -32_601, parameters: -32_602 } as const

export const Id = Schema.Union(Schema.String, Schema.Number)
export type Id = typeof Id.Type

/** A request, or without `id` a notification, or without `method` the answer to a request that was never made. */
export const Message = Schema.Struct({
  jsonrpc: Schema.Literal("2.0"),
  id: Schema.optional(Schema.NullOr(Id)),
  method: Schema.optional(Schema.String),
  params: Schema.optional(JsonObject)
})
export type Message = typeof Message.Type

export type Body = Readonly<Record<string, unknown>>

export const result = (id: Id, given: Body): Body => ({ jsonrpc: "2.0", id, result: given })

export const failure = (id: Id | null, code: number, message: string): Body => ({
  jsonrpc: "2.0",
  id,
  error: { code, message }
})

export const notification = (method: string, params: Body): Body => ({ jsonrpc: "2.0", method, params })

/** The version that is asked for, where it is spoken, else the newest. */
export const negotiated = (wanted: unknown): string => versions.find((one) => one === wanted) ?? versions[0]

export const isSpoken = (version: string): boolean => versions.some((one) => one === version)
