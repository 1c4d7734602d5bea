/**
 * `spoke mcp`: the MCP tools of an agent on a running server over standard input and output, one JSON-RPC message per
 * line.
 */
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as NodeStream from "@effect/platform-node/NodeStream"
import * as Effect from "effect/Effect"
import * as FiberMap from "effect/FiberMap"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { JsonObject } from "../../domain/Text.ts"
import * as Arguments from "./Arguments.ts"
import * as Connection from "./Connection.ts"
import * as Output from "./Output.ts"

const Id = Schema.Union(Schema.String, Schema.Number)
type Id = typeof Id.Type

const decode = Schema.decodeUnknownOption(
  Schema.parseJson(
    Schema.Struct({
      id: Schema.optional(Id),
      method: Schema.optional(Schema.String),
      params: Schema.optional(JsonObject)
    })
  )
)
const decodeId = Schema.decodeUnknownOption(Id)

const write = (line: string) => Output.write(`${line}\n`)

/** Maximum concurrent messages. */
const maxConcurrentMessages = 64

/** The messages of a response: one, or a stream of events. */
const messages = (response: HttpClientResponse.HttpClientResponse) =>
  (response.headers["content-type"] ?? "").startsWith("text/event-stream")
    ? response.stream.pipe(
        Stream.decodeText(),
        Stream.splitLines,
        Stream.filter((line) => line.startsWith("data: ")),
        Stream.map((line) => line.slice("data: ".length))
      )
    : Stream.filter(Stream.fromEffect(response.text), (text) => text !== "")

const decodeVersion = Schema.decodeUnknownOption(
  Schema.Struct({ _meta: Schema.Struct({ "io.modelcontextprotocol/protocolVersion": Schema.String }) })
)

/** The headers that HTTP requires for a message without a handshake. */
const headersOf = (method: string | undefined, params: JsonObject | undefined) =>
  Option.match(decodeVersion(params), {
    onNone: () => ({}),
    onSome: ({ _meta }) => ({
      "mcp-protocol-version": inHeader(_meta["io.modelcontextprotocol/protocolVersion"]),
      "mcp-method": inHeader(method ?? ""),
      ...(typeof params?.["name"] === "string" ? { "mcp-name": inHeader(params["name"]) } : {})
    })
  })

/** Text that is not plain ASCII, or looks encoded, as base64. */
const inHeader = (text: string): string =>
  /^[!-~]*$/.test(text) && !text.startsWith("=?")
    ? text
    : `=?base64?${Buffer.from(text).toString("base64")}?=`

const failed = (id: Id, message: string) =>
  write(JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32_000, message } }))

const serve = (flags: Connection.Flags) =>
  Effect.gen(function* () {
    const { ask } = yield* Connection.connect(flags)
    const waiting = yield* FiberMap.make<string>()
    const places = yield* Effect.makeSemaphore(maxConcurrentMessages)

    const forward = (line: string, id: Id | undefined, headers: Readonly<Record<string, string>>) =>
      ask(
        HttpClientRequest.post("/mcp").pipe(
          HttpClientRequest.setHeader("accept", "application/json, text/event-stream"),
          HttpClientRequest.setHeaders(headers),
          HttpClientRequest.bodyText(line, "application/json")
        ),
        Connection.turnTimeout
      ).pipe(
        Effect.flatMap((response) => Stream.runForEach(messages(response), write)),
        Effect.catchTags({
          ResponseError: () => new Connection.CommandFailed({ message: "The server's answer was cut off." })
        }),
        Effect.catchAll(({ message }) => (id === undefined ? Effect.void : failed(id, message))),
        places.withPermits(1)
      )

    const takeLine = (line: string) => {
      const { id, method, params } = Option.getOrElse(decode(line), () => ({
        id: undefined,
        method: undefined,
        params: undefined
      }))
      if (method === "notifications/cancelled") {
        const cancelled = decodeId(params?.["requestId"])
        return Option.match(cancelled, {
          onNone: () => Effect.void,
          onSome: (requestId) => FiberMap.remove(waiting, JSON.stringify(requestId))
        })
      }
      const name = id === undefined ? `notification ${crypto.randomUUID()}` : JSON.stringify(id)
      return Effect.asVoid(FiberMap.run(waiting, name, forward(line, id, headersOf(method, params))))
    }

    yield* NodeStream.stdin.pipe(
      Stream.decodeText(),
      Stream.splitLines,
      Stream.filter((line) => line.trim() !== ""),
      Stream.runForEach(takeLine)
    )
    yield* FiberMap.awaitEmpty(waiting)
  }).pipe(Effect.scoped)

export const mcp = (run: Arguments.Run) =>
  Arguments.command(
    "mcp",
    "Offer the agent to an MCP client over standard input and output.",
    "spoke mcp",
    "claude mcp add spoke -- spoke mcp --key-file key.txt"
  )
    .addOption(Arguments.url)
    .addOption(Arguments.key)
    .addOption(Arguments.keyFile)
    .action((flags) => run(serve(flags)))
