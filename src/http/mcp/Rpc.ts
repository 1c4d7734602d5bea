/** JSON-RPC 2.0 in the form of the Model Context Protocol. */
import * as Schema from "effect/Schema"
import { JsonObject } from "../../domain/Text.ts"

/** The version without a handshake: each request has its own version and capabilities, and each result its kind. */
export const stateless = "2026-07-28"

/** Versions with a handshake, newest first. Their differences do not matter here. */
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

/** A request; without `id` a notification; without `method` the response to a request that was never made. */
export const Message = Schema.Struct({
  jsonrpc: Schema.Literal("2.0"),
  id: Schema.optional(Schema.NullOr(Id)),
  method: Schema.optional(Schema.String),
  params: Schema.optional(JsonObject)
})
export type Message = typeof Message.Type

export type Body = Readonly<Record<string, unknown>>

export const result = (id: Id, value: Body): Body => ({ jsonrpc: "2.0", id, result: value })

export const failure = (id: Id | null, code: number, message: string, data?: Body): Body => ({
  jsonrpc: "2.0",
  id,
  error: { code, message, ...(data === undefined ? {} : { data }) }
})

export const notification = (method: string, params: Body): Body => ({ jsonrpc: "2.0", method, params })

/** The version agreed in a handshake: the requested one if it is supported, else the newest. */
export const negotiateVersion = (requested: unknown): string =>
  withHandshake.find((one) => one === requested) ?? withHandshake[0]

export const isSupportedVersion = (version: string): boolean => versions.includes(version)
