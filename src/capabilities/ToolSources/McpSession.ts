/**
 * A client of a remote MCP server, with JSON-RPC over streamable HTTP. If the server supports protocol version
 * 2026-07-28, each request is independent; else the handshake of earlier versions is used.
 */
import type { Context } from "effect"
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as LongIntegers from "../../domain/agents/LongIntegers.ts"
import { scopesIn } from "../../domain/agents/ToolConnection.ts"
import { type ToolFailure, toolFailure } from "../../domain/agents/ToolFailure.ts"
import { challengeParameter } from "../../domain/BearerChallenge.ts"
import * as Json from "../../domain/Json.ts"
import { isObject } from "../../domain/JsonValue.ts"
import { JsonObject, type JsonValue } from "../../domain/Text.ts"
import type { OutboundHttp, OutboundResponse } from "../OutboundHttp.ts"
import { SseLines } from "../../concurrency/SseLines.ts"
import { monotonicMillis } from "../../domain/MonotonicClock.ts"
import * as Exchange from "./Exchange.ts"
import * as McpHeaders from "./McpHeaders.ts"

const statelessVersion = "2026-07-28"
const handshakeVersion = "2025-06-18"
/** Maximum number of tools of one server, and of pages of its list. */
const maxTools = 64
const maxPages = 32
/** Number of pages that are read however long they take. Later ones are requested only within this time. */
const minPages = 4
const maxPagesMillis = 5_000
/** Time-out of each request for the list, because the turn waits for it. */
const listTimeoutSeconds = 5
/** Time-out of the end of a session. */
const endTimeoutSeconds = 5
/** Time-out of the check for the version without a handshake. */
const probeTimeoutSeconds = 3

const sessionHeader = "mcp-session-id"

const clientInfo = { name: "spoke", version: "1" }
/** Metadata of each request, replacing the handshake. */
const requestMeta: JsonObject = {
  "io.modelcontextprotocol/protocolVersion": statelessVersion,
  "io.modelcontextprotocol/clientInfo": clientInfo,
  "io.modelcontextprotocol/clientCapabilities": {}
}

/** Some servers write null for what they leave out. */
const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { nullable: true })

const Message = Schema.Struct({
  id: optional(Schema.Union(Schema.Number, Schema.String)),
  /** Of a request by the server. Its ids have nothing to do with ours. */
  method: optional(Schema.String),
  result: optional(JsonObject),
  error: optional(Schema.Struct({ message: Schema.String }))
})
const decodeMessage = Schema.decodeUnknownOption(Message)

const RemoteTool = Schema.Struct({
  name: Schema.String.pipe(Schema.minLength(1), Schema.maxLength(200)),
  description: Schema.optionalWith(Schema.String, { nullable: true, default: () => "" }),
  inputSchema: JsonObject
})
type RemoteTool = typeof RemoteTool.Type

/** The list of a server's tools. */
export interface ToolList {
  /** Whether the server needs no handshake. */
  readonly isStateless: boolean
  readonly tools: ReadonlyArray<RemoteTool>
  /** How long the list may be cached, in milliseconds; null if the server does not say. */
  readonly ttlMs: number | null
}

const decodePage = Schema.decodeUnknownOption(
  Schema.Struct({
    tools: Schema.Array(Schema.Unknown),
    nextCursor: optional(Schema.String),
    ttlMs: optional(Schema.Number)
  })
)
const decodeTool = Schema.decodeUnknownOption(RemoteTool)
const decodeDiscovery = Schema.decodeUnknownOption(
  Schema.Struct({ supportedVersions: Schema.Array(Schema.String) })
)

const decodeResult = Schema.decodeUnknownOption(
  Schema.Struct({
    content: Schema.optionalWith(Schema.Array(JsonObject), { nullable: true, default: () => [] }),
    isError: optional(Schema.Boolean)
  })
)

const failed = (message: string) => toolFailure("TOOL_FAILED", message)

/** The JSON texts of an answer, which is one message or a stream of events. */
const textsOf = (response: OutboundResponse): ReadonlyArray<string> => {
  const text = Exchange.textOf(response)
  if (!/^\s*text\/event-stream\b/i.test(response.headers["content-type"] ?? "")) return [text]
  return text.split(/\r?\n\r?\n|\r\r/).map((event) =>
    event
      .split(/\r\n|\r|\n/)
      .flatMap((line) => (line.startsWith("data:") ? [line.slice(5).trimStart()] : []))
      .join("\n")
  )
}

/** The answers to the request `id` among the server's messages. */
const answersTo = (id: number, values: ReadonlyArray<unknown>) =>
  Arr.filterMap(values, (value) => decodeMessage(value)).filter(
    (found) => found.id === id && found.method === undefined
  )

/** True for the piece of a stream of events with the answer: a server may keep the stream open after it. */
const isLastFor = (id: number) => {
  const lines = new SseLines(Exchange.maxAnswerBytes)
  return (piece: Uint8Array): boolean =>
    answersTo(
      id,
      Arr.filterMap(lines.push(piece) ?? [], (text) => Either.getRight(Json.parse(text)))
    ).length > 0
}

const resultOf = (
  response: OutboundResponse,
  id: number,
  method: string
): Effect.Effect<JsonObject, ToolFailure> => {
  // Schemas of tools may have limits of 64 bits, which must stay numbers.
  const parse = method === "tools/call" ? Json.parseExactly : Json.parse
  const [parseErrors, values] = Arr.separate(textsOf(response).map((text) => parse(text)))
  const [message] = answersTo(id, values)
  if (message?.error !== undefined) return Effect.fail(failed(message.error.message))
  // Earlier versions have no result type.
  const kind = message?.result?.["resultType"] ?? "complete"
  if (kind === "input_required") return Effect.fail(failed("the MCP server asks for what no agent can enter"))
  if (kind !== "complete") return Effect.fail(failed("the MCP server's result is of an unknown kind"))
  if (message?.result !== undefined) return Effect.succeed(message.result)
  const unusable = parseErrors.find(({ reason }) => reason === "too-deep")
  return Effect.fail(
    failed(
      unusable === undefined
        ? "the MCP server gave no answer"
        : `the MCP server's answer cannot be used: ${unusable.message}`
    )
  )
}

/** Why the server refuses a token by OAuth, if it does. */
const refusalOf = ({ headers, status }: OutboundResponse): ToolFailure | undefined => {
  if (status === 401) {
    return toolFailure("TOOL_CONNECTION_REQUIRED", "the MCP server does not accept the token")
  }
  const challenge = headers["www-authenticate"]
  if (status !== 403 || challengeParameter(challenge, "error") !== "insufficient_scope") return undefined
  const failure = toolFailure("TOOL_SCOPE_REQUIRED", "the MCP server demands more scopes")
  return { ...failure, scopes: scopesIn(challengeParameter(challenge, "scope")) }
}

interface Server {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** Whether the credential is a token by OAuth, which may end at any time. */
  readonly hasTokens: boolean
}

type Headers = Readonly<Record<string, string>>
type Ask = (
  method: string,
  params: JsonObject,
  timeoutSeconds: number,
  headers?: Headers
) => Effect.Effect<JsonObject, ToolFailure>

/** The text of a part, or of the resource that is embedded in it, or the resource that it links to. */
const textOfPart = (part: JsonObject): string => {
  const { name, resource, text = isObject(resource) ? resource["text"] : undefined, type, uri } = part
  if (typeof text === "string") return text
  return type === "resource_link" ? `${String(name)}: ${String(uri)}` : `(${String(type)})`
}

/** Reads the pages of the server's list. */
const listTools = Effect.fn("McpSession.listTools")(function* (ask: Ask, isStateless: boolean) {
  const found: Array<RemoteTool> = []
  let cursor: string | undefined
  let ttlMs: number | null = null
  const begun = yield* monotonicMillis
  for (let page = 0; page < maxPages && found.length < maxTools; page++) {
    if (page >= minPages && (yield* monotonicMillis) - begun > maxPagesMillis) break
    const result = yield* ask("tools/list", cursor === undefined ? {} : { cursor }, listTimeoutSeconds)
    const decoded = Option.getOrUndefined(decodePage(result))
    if (decoded === undefined) return yield* Effect.fail(failed("the MCP server's list is not one of tools"))
    const tools = decoded.tools.flatMap((tool) => Option.toArray(decodeTool(tool)))
    found.push(...(isStateless ? tools.filter(McpHeaders.hasValidAnnotations) : tools))
    if (decoded.ttlMs !== undefined) ttlMs = Math.min(ttlMs ?? Infinity, Math.max(0, decoded.ttlMs))
    cursor = decoded.nextCursor
    if (cursor === undefined) break
  }
  const listed: ToolList = { isStateless, tools: found.slice(0, maxTools), ttlMs }
  return listed
})

/**
 * Opens a server. `callTimeoutSeconds` is the time-out of a call. Nothing is sent before it is needed. Its sessions end
 * with the scope.
 */
export const open = Effect.fn("McpSession.open")(function* (
  http: Context.Tag.Service<typeof OutboundHttp>,
  { url, headers, hasTokens }: Server,
  callTimeoutSeconds: number
) {
  let nextId = 1
  const post = (
    message: JsonObject,
    timeoutSeconds: number,
    extraHeaders: Headers,
    isLast?: (piece: Uint8Array) => boolean
  ) =>
    Exchange.requestAnswer(
      http,
      {
        url,
        method: "POST",
        headers: {
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
          ...headers,
          ...extraHeaders
        },
        body: LongIntegers.writeMarked({ jsonrpc: "2.0", ...message }),
        ...(isLast === undefined ? {} : { isLast })
      },
      timeoutSeconds
    )
  const accepted = (response: OutboundResponse) => {
    const problem = hasTokens ? refusalOf(response) : undefined
    return problem === undefined ? Exchange.accepted(response) : Effect.fail(problem)
  }
  const askOnce = Effect.fn("McpSession.askOnce")(function* (
    method: string,
    params: JsonObject,
    timeoutSeconds: number,
    extraHeaders: Headers
  ) {
    const id = nextId++
    const response = yield* post({ id, method, params }, timeoutSeconds, extraHeaders, isLastFor(id))
    return { result: Effect.flatMap(accepted(response), () => resultOf(response, id, method)), response }
  })

  const askStateless: Ask = (method, params, timeoutSeconds, extraHeaders = {}) =>
    Effect.flatMap(
      askOnce(method, { ...params, _meta: requestMeta }, timeoutSeconds, {
        "mcp-protocol-version": statelessVersion,
        "mcp-method": method,
        ...extraHeaders
      }),
      ({ result }) => result
    )

  /** The headers of a session. `initialize` is sent before everything else, again after a handshake that failed. */
  let sessionHeaders: Headers | null = null
  /** The headers of sessions that the server has opened, also of those whose handshake failed afterwards. */
  const sessions: Array<Headers> = []
  const handshakes = yield* Effect.makeSemaphore(1)
  const openSession = handshakes.withPermits(1)(
    Effect.gen(function* () {
      if (sessionHeaders !== null) return sessionHeaders
      const timeoutSeconds = Math.min(callTimeoutSeconds, listTimeoutSeconds)
      const { response, result: answer } = yield* askOnce(
        "initialize",
        { protocolVersion: handshakeVersion, capabilities: {}, clientInfo },
        timeoutSeconds,
        {}
      )
      const { protocolVersion: version } = yield* answer
      const id = response.headers[sessionHeader]
      const opened: Headers = {
        "mcp-protocol-version": typeof version === "string" ? version : handshakeVersion,
        ...(id === undefined ? {} : { [sessionHeader]: id })
      }
      if (id !== undefined) sessions.push(opened)
      yield* Effect.flatMap(post({ method: "notifications/initialized" }, timeoutSeconds, opened), accepted)
      sessionHeaders = opened
      return opened
    })
  )
  const forgetSession = (lost: Headers) => {
    if (sessionHeaders === lost) sessionHeaders = null
    const index = sessions.indexOf(lost)
    if (index >= 0) sessions.splice(index, 1)
  }
  /** A server that does not know the session has not processed the request. It gets the request in a new session. */
  const askInSession: Ask = Effect.fn("McpSession.askInSession")(function* (method, params, timeoutSeconds) {
    const session = yield* openSession
    const { response, result } = yield* askOnce(method, params, timeoutSeconds, session)
    if (response.status !== 404 || session[sessionHeader] === undefined) return yield* result
    forgetSession(session)
    const again = yield* askOnce(method, params, timeoutSeconds, yield* openSession)
    return yield* again.result
  })

  /** False on any failure, because servers of earlier versions refuse the request in different ways. */
  const supportsStateless = askStateless(
    "server/discover",
    {},
    Math.min(callTimeoutSeconds, probeTimeoutSeconds)
  ).pipe(
    Effect.map((result) =>
      Option.exists(decodeDiscovery(result), ({ supportedVersions }) =>
        supportedVersions.includes(statelessVersion)
      )
    ),
    Effect.orElseSucceed(() => false)
  )

  const list = Effect.flatMap(supportsStateless, (isStateless) =>
    listTools(isStateless ? askStateless : askInSession, isStateless)
  )

  const call = Effect.fn("McpSession.call")(function* (
    isStateless: boolean,
    { inputSchema, name }: RemoteTool,
    input: JsonObject
  ) {
    const params = { name, arguments: LongIntegers.withMarks(inputSchema, input) }
    const raw = yield* isStateless
      ? askStateless("tools/call", params, callTimeoutSeconds, {
          "mcp-name": McpHeaders.encodeHeaderValue(name),
          ...McpHeaders.headersFor(inputSchema, input)
        })
      : askInSession("tools/call", params, callTimeoutSeconds)
    const result = Option.getOrUndefined(decodeResult(raw))
    if (result === undefined) return yield* Effect.fail(failed("the MCP server's answer is not a result"))
    const text = result.content.map(textOfPart).join("\n")
    const structured = raw["structuredContent"] ?? null
    if (result.isError === true)
      return yield* Effect.fail(failed(text === "" ? JSON.stringify(structured) : text))
    const output: JsonValue = structured ?? text
    return output
  })

  // In the background, so that the caller does not wait. A server may refuse it.
  yield* Effect.addFinalizer(() =>
    Effect.forkDaemon(
      Effect.forEach(
        sessions,
        (session) =>
          Effect.ignore(
            Exchange.requestAnswer(
              http,
              { url, method: "DELETE", headers: { ...headers, ...session } },
              endTimeoutSeconds
            )
          ),
        { discard: true }
      )
    )
  )

  return { list, call } as const
})
