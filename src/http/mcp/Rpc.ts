/** JSON-RPC 2.0 as the Model Context Protocol uses it. */
import * as Schema from "effect/Schema"
import { JsonObject } from "../../domain/Text.ts"

/** The version without a handshake: each request says by itself what it needs, and each result of what kind it is. */
export const stateless = "2026-07-28"

/** Versions with a handshake, newest first; they differ in nothing that is used here. */
const withHandshake = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] as const

export const versions: ReadonlyArray<string> = [stateless, ...withHandshake]

export const codes = {
  parse: -32_700,
  invalid: -32_600,
  noMethod: -32_601,
  parameters: -32_602,
  headerMismatch: -32_020,
  unsupportedVersion: -32_022
} as const

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

export const failure = (id: Id | null, code: number, message: string, data?: Body): Body => ({
  jsonrpc: "2.0",
  id,
  error: { code, message, ...(data === undefined ? {} : { data }) }
})

export const notification = (method: string, params: Body): Body => ({ jsonrpc: "2.0", method, params })

/** What a handshake agrees on: the version that is asked for, where it is spoken, else the newest of its kind. */
export const negotiated = (wanted: unknown): string =>
  withHandshake.find((one) => one === wanted) ?? withHandshake[0]

export const isSpoken = (version: string): boolean => versions.includes(version)
