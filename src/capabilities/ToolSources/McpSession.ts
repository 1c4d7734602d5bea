/** A remote MCP server, spoken to in JSON-RPC over streamable HTTP. */
import type { Context } from "effect"
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { toolFailure } from "../../domain/agents/ToolFailure.ts"
import * as Json from "../../domain/Json.ts"
import { JsonObject, type JsonValue } from "../../domain/Text.ts"
import type { OutboundHttp, OutboundResponse } from "../OutboundHttp.ts"
import * as Exchange from "./Exchange.ts"

const protocol = "2025-06-18"
/** Most tools of one server, and most pages that its list may have. */
const maxTools = 64
const maxPages = 4
/** Seconds that listing may take: the turn waits for it. */
const listing = 5

const Message = Schema.Struct({
  id: Schema.optional(Schema.Union(Schema.Number, Schema.String, Schema.Null)),
  result: Schema.optional(JsonObject),
  error: Schema.optional(Schema.Struct({ code: Schema.Number, message: Schema.String }))
})
const decodeMessage = Schema.decodeUnknownOption(Message)

const RemoteTool = Schema.Struct({
  name: Schema.String.pipe(Schema.minLength(1), Schema.maxLength(200)),
  description: Schema.optionalWith(Schema.String, { exact: true, default: () => "" }),
  inputSchema: JsonObject
})
export type RemoteTool = typeof RemoteTool.Type
const decodePage = Schema.decodeUnknownOption(
  Schema.Struct({ tools: Schema.Array(Schema.Unknown), nextCursor: Schema.optional(Schema.String) })
)
const decodeTool = Schema.decodeUnknownOption(RemoteTool)

const decodeResult = Schema.decodeUnknownOption(
  Schema.Struct({
    content: Schema.optionalWith(Schema.Array(JsonObject), { exact: true, default: () => [] }),
    structuredContent: Schema.optional(JsonObject),
    isError: Schema.optional(Schema.Boolean)
  })
)

const failed = (message: string) => toolFailure("TOOL_FAILED", message)

/** The JSON texts of an answer, which is one message or a stream of events. */
const textsOf = (response: OutboundResponse): ReadonlyArray<string> => {
  const text = Exchange.textOf(response)
  if (!(response.headers["content-type"] ?? "").startsWith("text/event-stream")) return [text]
  return text.split(/\r?\n\r?\n|\r\r/).map((event) =>
    event
      .split(/\r\n|\r|\n/)
      .flatMap((line) => (line.startsWith("data:") ? [line.slice(5).trimStart()] : []))
      .join("\n")
  )
}

const resultOf = (response: OutboundResponse, id: number) => {
  const [problems, values] = Arr.separate(textsOf(response).map((text) => Json.parse(text)))
  const message = Arr.filterMap(values, (value) => decodeMessage(value)).find((found) => found.id === id)
  if (message?.error !== undefined) return Effect.fail(failed(message.error.message))
  if (message?.result !== undefined) return Effect.succeed(message.result)
  const unusable = problems.find(({ reason }) => reason === "too-deep")
  return Effect.fail(
    failed(
      unusable === undefined
        ? "the MCP server gave no answer"
        : `the MCP server's answer cannot be used: ${unusable.message}`
    )
  )
}

export interface Server {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
}

/** A session with the server; `initialize` goes before everything else. */
export const open = Effect.fn("McpSession.open")(function* (
  http: Context.Tag.Service<typeof OutboundHttp>,
  { url, headers }: Server,
  seconds: number
) {
  const state = { session: {}, next: 1 }
  const post = (message: JsonObject, limit: number) =>
    Effect.flatMap(
      Exchange.answered(
        http,
        {
          url,
          method: "POST",
          headers: {
            "content-type": "application/json",
            accept: "application/json, text/event-stream",
            ...headers,
            ...state.session
          },
          body: JSON.stringify({ jsonrpc: "2.0", ...message })
        },
        limit
      ),
      Exchange.accepted
    )
  const ask = Effect.fn("McpSession.ask")(function* (method: string, params: JsonObject, limit: number) {
    const id = state.next++
    const response = yield* post({ id, method, params }, limit)
    return [yield* resultOf(response, id), response] as const
  })
  const [agreed, answer] = yield* ask(
    "initialize",
    { protocolVersion: protocol, capabilities: {}, clientInfo: { name: "spoke", version: "1" } },
    Math.min(seconds, listing)
  )
  const id = answer.headers["mcp-session-id"]
  const version = agreed["protocolVersion"]
  state.session = {
    "mcp-protocol-version": typeof version === "string" ? version : protocol,
    ...(id === undefined ? {} : { "mcp-session-id": id })
  }
  yield* post({ method: "notifications/initialized" }, Math.min(seconds, listing))

  const list = Effect.gen(function* () {
    const found: Array<RemoteTool> = []
    let cursor: string | undefined
    for (let page = 0; page < maxPages; page++) {
      const [result] = yield* ask("tools/list", cursor === undefined ? {} : { cursor }, listing)
      const decoded = Option.getOrUndefined(decodePage(result))
      if (decoded === undefined)
        return yield* Effect.fail(failed("the MCP server's list is not one of tools"))
      found.push(...decoded.tools.flatMap((tool) => Option.toArray(decodeTool(tool))))
      cursor = decoded.nextCursor
      if (cursor === undefined) break
    }
    return found.slice(0, maxTools)
  })

  const call = Effect.fn("McpSession.call")(function* (name: string, input: JsonObject) {
    const [raw] = yield* ask("tools/call", { name, arguments: input }, seconds)
    const result = Option.getOrUndefined(decodeResult(raw))
    if (result === undefined) return yield* Effect.fail(failed("the MCP server's answer is not a result"))
    const text = result.content.map(said).join("\n")
    if (result.isError === true) return yield* Effect.fail(failed(text))
    const output: JsonValue = result.structuredContent ?? text
    return output
  })

  return { list, call } as const
})

const said = (part: JsonObject): string =>
  typeof part["text"] === "string" ? part["text"] : `(${String(part["type"])})`
