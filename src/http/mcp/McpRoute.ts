/**
 * `POST /mcp`: the Model Context Protocol over streamable HTTP, for the agent of the key. There are no sessions: every
 * request is complete, and any process may answer it. A refused request is an HTTP error with the envelope; a refused
 * tool call is the tool's result.
 */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Mailbox from "effect/Mailbox"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { AgentKey } from "../../domain/accounts/Access.ts"
import * as Json from "../../domain/Json.ts"
import { Agents } from "../../usecases/agents/Agents.ts"
import { errorResponse } from "../server/Boundary.ts"
import { authenticate, keyServices } from "../KeyAuth.ts"
import * as RequestId from "../server/RequestId.ts"
import * as Rpc from "./Rpc.ts"
import * as Stateless from "./Stateless.ts"
import * as Tools from "./Tools.ts"

/** Path of the route. */
const path = "/mcp"

const decodeMessage = Schema.decodeUnknownOption(Rpc.Message)
const decodeProgressToken = Schema.decodeUnknownOption(
  Schema.Struct({ _meta: Schema.Struct({ progressToken: Rpc.Id }) })
)

const json = (body: Rpc.Body, status = 200) => HttpServerResponse.unsafeJson(body, { status })

/** Maximum progress frames that wait for a slow client. Then the tool waits. */
const maxProgressFrames = 1_024

const keepAlives = Stream.as(Stream.fromSchedule(Schedule.spaced("12 seconds")), ": keep-alive\n\n")

const frame = (body: Rpc.Body) => `event: message\ndata: ${JSON.stringify(body)}\n\n`

type Run = (progress: Tools.Progress) => Effect.Effect<Rpc.Body>

/** Streams progress as notifications with `token`, then the result. */
const streamResult = (token: Rpc.Id, run: Run) =>
  HttpServerResponse.stream(
    Stream.unwrapScoped(
      Effect.gen(function* () {
        const out = yield* Mailbox.make<string>(maxProgressFrames)
        let step = 0
        const progress: Tools.Progress = (message) =>
          out.offer(
            frame(
              Rpc.notification("notifications/progress", { progressToken: token, progress: ++step, message })
            )
          )
        yield* run(progress).pipe(
          Effect.flatMap((body) => out.offer(frame(body))),
          Effect.ensuring(out.end),
          Effect.forkScoped
        )
        return Stream.merge(Mailbox.toStream(out), keepAlives, { haltStrategy: "left" })
      })
    ).pipe(Stream.encodeText),
    {
      contentType: "text/event-stream",
      headers: { "cache-control": "no-cache, no-transform", "x-accel-buffering": "no" }
    }
  )

const acceptsEvents = ({ headers }: HttpServerRequest.HttpServerRequest) =>
  (headers["accept"] ?? "").includes("text/event-stream")

/** Adds the route. `appUrl` is `{app_url}`, `version` the product's version. */
export const layer = ({ appUrl, version }: { readonly appUrl: string; readonly version: string }) =>
  HttpApiBuilder.Router.use((router) =>
    Effect.gen(function* () {
      const agents = yield* Agents
      const services = yield* keyServices
      const tools = yield* Tools.make
      const ownOrigin = new URL(appUrl).origin
      const requirements = { permission: ["retrieve", "chat"], publicApi: false, ownOrigin } as const

      const nameOf = (key: AgentKey) => Effect.map(agents.get(key, key.agentId), ({ name }) => name)

      const instructionsOf = (agent: string) =>
        `Answers and passages from the sources of the agent “${agent}”. Cite what you use.`

      const initialize = (key: AgentKey, id: Rpc.Id, requestedVersion: unknown) =>
        Effect.map(nameOf(key), (agent) =>
          Rpc.result(id, {
            protocolVersion: Rpc.negotiateVersion(requestedVersion),
            capabilities: { tools: { listChanged: false } },
            serverInfo: { name: "spoke", title: agent, version },
            instructions: instructionsOf(agent)
          })
        )

      /** One tool call, with progress if the client requests it. */
      const callTool = (
        key: AgentKey,
        id: Rpc.Id,
        params: Rpc.Body,
        sendEvents: boolean,
        result: typeof Rpc.result
      ) => {
        const { arguments: input = {}, name } = params
        if (!Tools.isName(name)) {
          return Effect.succeed(json(Rpc.failure(id, Rpc.codes.parameters, "There is no such tool.")))
        }
        const run: Run = (progress) =>
          Effect.map(tools.call(key, name, input, progress), (value) => result(id, value))
        const token = Option.filter(decodeProgressToken(params), () => sendEvents)
        return Option.match(token, {
          onNone: () =>
            Effect.map(
              run(() => Effect.void),
              (body) => json(body)
            ),
          onSome: ({ _meta }) => Effect.succeed(streamResult(_meta.progressToken, run))
        })
      }

      const handleWithHandshake = (
        key: AgentKey,
        { id, method, params = {} }: Rpc.Message,
        sendEvents: boolean
      ) => {
        // A notification, or a response to a request that was never made. A cancelled turn still settles.
        if (method === undefined || id === undefined || id === null) {
          return Effect.succeed(HttpServerResponse.empty({ status: 202 }))
        }
        switch (method) {
          case "initialize":
            return Effect.map(initialize(key, id, params["protocolVersion"]), (body) => json(body))
          case "ping":
            return Effect.succeed(json(Rpc.result(id, {})))
          case "tools/list":
            return Effect.map(nameOf(key), (agent) => json(Rpc.result(id, { tools: Tools.list(key, agent) })))
          case "tools/call":
            return callTool(key, id, params, sendEvents, Rpc.result)
          default:
            return Effect.succeed(json(Rpc.failure(id, Rpc.codes.noMethod, "There is no such method.")))
        }
      }

      const result = (id: Rpc.Id, value: Rpc.Body) => Stateless.result(version, id, value)

      /** Answers a stateless request. */
      const handleStateless = (
        key: AgentKey,
        { method, params = {} }: Rpc.Message,
        id: Rpc.Id,
        sendEvents: boolean
      ) => {
        switch (method) {
          case "server/discover":
            return Effect.map(nameOf(key), (agent) =>
              json(
                result(id, {
                  supportedVersions: Rpc.versions,
                  capabilities: { tools: {} },
                  instructions: instructionsOf(agent),
                  ...Stateless.caching
                })
              )
            )
          case "tools/list":
            return Effect.map(nameOf(key), (agent) =>
              json(result(id, { tools: Tools.list(key, agent), ...Stateless.caching }))
            )
          case "tools/call":
            return callTool(key, id, params, sendEvents, result)
          default:
            return Effect.succeed(json(Rpc.failure(id, Rpc.codes.noMethod, "There is no such method."), 404))
        }
      }

      const receiveMessage = Effect.gen(function* () {
        const request = yield* HttpServerRequest.HttpServerRequest
        const key = yield* authenticate(services, requirements, request)
        // The boundary answers for a body that is too large or incomplete.
        const text = yield* Effect.orDie(request.text)
        const body = Json.parse(text)
        if (Either.isLeft(body)) {
          const { message } = body.left
          return json(Rpc.failure(null, Rpc.codes.parse, `The body cannot be read: ${message}.`), 400)
        }
        const message = decodeMessage(body.right)
        if (Option.isNone(message)) {
          return json(Rpc.failure(null, Rpc.codes.invalid, "Send one JSON-RPC 2.0 message."), 400)
        }
        const { id } = message.value
        if (id !== undefined && id !== null && Stateless.isStatelessRequest(message.value, request.headers)) {
          const refused = Stateless.refusal({ ...message.value, id }, request.headers)
          if (refused !== null) return json(refused, 400)
          return yield* handleStateless(key, message.value, id, acceptsEvents(request))
        }
        const protocolVersion = request.headers["mcp-protocol-version"]
        if (protocolVersion !== undefined && !Rpc.isSupportedVersion(protocolVersion)) {
          const message = `This version is not supported. Supported versions: ${Rpc.versions.join(", ")}.`
          return json(Rpc.failure(null, Rpc.codes.invalid, message), 400)
        }
        return yield* handleWithHandshake(key, message.value, acceptsEvents(request))
      }).pipe(
        Effect.catchTag("UNAUTHORIZED", (error) =>
          Effect.map(RequestId.RequestId, (id) => errorResponse(error, id, { "www-authenticate": "Bearer" }))
        )
      )
      yield* router.post(path, receiveMessage)
    })
  )
