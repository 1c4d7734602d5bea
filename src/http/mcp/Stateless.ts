/** Rules of protocol version 2026-07-28 for requests and results. Neither depends on earlier messages. */
import { isObject } from "../../domain/JsonValue.ts"
import type { JsonObject } from "../../domain/Text.ts"
import * as Rpc from "./Rpc.ts"

const prefix = "io.modelcontextprotocol/"

type Headers = Readonly<Record<string, string | undefined>>
type Request = Rpc.Message & { readonly id: Rpc.Id }

const metaOf = ({ params }: Rpc.Message): JsonObject => {
  const meta = params?.["_meta"]
  return isObject(meta) ? meta : {}
}

/** True for a request that names its version itself. Others belong to a version with a handshake. */
export const isStatelessRequest = (message: Rpc.Message, headers: Headers): boolean =>
  metaOf(message)[`${prefix}protocolVersion`] !== undefined ||
  headers["mcp-protocol-version"] === Rpc.stateless

/** The value of a header. Text that is not plain ASCII is base64. */
const decodeHeader = (header: string | undefined): string | undefined => {
  const inner = /^=\?base64\?(.*)\?=$/u.exec(header ?? "")?.[1]
  return inner === undefined ? header : Buffer.from(inner, "base64").toString()
}

/** Why the request is refused, or null. Headers must repeat the values of the body. */
export const refusal = (message: Request, headers: Headers): Rpc.Body | null => {
  const { id, method, params = {} } = message
  const meta = metaOf(message)
  const version = meta[`${prefix}protocolVersion`]
  if (typeof version !== "string" || !isObject(meta[`${prefix}clientCapabilities`])) {
    const message = `_meta needs ${prefix}protocolVersion and ${prefix}clientCapabilities.`
    return Rpc.failure(id, Rpc.codes.parameters, message)
  }
  const mismatch = (name: string) =>
    Rpc.failure(id, Rpc.codes.headerMismatch, `The header ${name} contradicts the body.`)
  if (headers["mcp-protocol-version"] !== version) return mismatch("MCP-Protocol-Version")
  if (version !== Rpc.stateless) {
    const data = { supported: Rpc.versions, requested: version }
    return Rpc.failure(id, Rpc.codes.unsupportedVersion, "Unsupported protocol version", data)
  }
  if (headers["mcp-method"] !== method) return mismatch("Mcp-Method")
  return method === "tools/call" && decodeHeader(headers["mcp-name"]) !== params["name"]
    ? mismatch("Mcp-Name")
    : null
}

/** A complete result with the server's name and version. */
export const result = (version: string, id: Rpc.Id, value: Rpc.Body): Rpc.Body =>
  Rpc.result(id, {
    resultType: "complete",
    ...value,
    _meta: { [`${prefix}serverInfo`]: { name: "spoke", version } }
  })

/** How long a list may be cached: privately, because it depends on the key's permissions. */
export const caching: Rpc.Body = { ttlMs: 60_000, cacheScope: "private" }
