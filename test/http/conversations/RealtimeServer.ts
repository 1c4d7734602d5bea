/** The realtime socket on a free port with the worker's database, and clients for it. */
import * as HttpApi from "@effect/platform/HttpApi"
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpServer from "@effect/platform/HttpServer"
import { WebSocketConstructor } from "@effect/platform/Socket"
import * as NodeSocket from "@effect/platform-node/NodeSocket"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Net from "node:net"
import * as Memory from "../../../src/capabilities/Realtime/Memory.ts"
import * as DerivedKeys from "../../../src/capabilities/SecretBox/DerivedKeys.ts"
import type { ConversationId, MessageId } from "../../../src/domain/Ids.ts"
import { newId } from "../../../src/domain/Ids.ts"
import * as RealtimeSocket from "../../../src/http/realtime/RealtimeSocket.ts"
import * as Server from "../../../src/http/server/Server.ts"
import { ConversationFeedStore } from "../../../src/store/conversations/ConversationFeed.ts"
import { RealtimeAccess } from "../../../src/usecases/chat/RealtimeAccess.ts"
import { TurnSettings } from "../../../src/usecases/chat/TurnSettings.ts"
import { RealtimeFeed } from "../../../src/usecases/conversations/RealtimeFeed.ts"
import * as Fixtures from "../../Fixtures.ts"
import { openGate } from "../OpenGate.ts"

export const masterSecrets = [Redacted.make("a master secret of the tests, long enough")] as const

const settings = Layer.succeed(TurnSettings, {
  timeout: Duration.seconds(10),
  runtimeData: true,
  realtimeUrl: "ws://127.0.0.1/api/realtime",
  drain: Duration.seconds(5)
})

const useCases = Layer.mergeAll(RealtimeAccess.Default, RealtimeFeed.Default).pipe(
  Layer.provideMerge(
    Layer.mergeAll(
      DerivedKeys.layer(masterSecrets),
      settings,
      Memory.layerMemory,
      ConversationFeedStore.Default
    )
  )
)

/** `HttpServer`, and the use-cases of the socket. */
export const layer = (limits: Partial<RealtimeSocket.Limits> = {}) =>
  Server.serve(
    HttpApiBuilder.api(HttpApi.make("none")).pipe(
      Layer.provide(RealtimeSocket.layer(limits)),
      Layer.provide(openGate)
    )
  ).pipe(
    RealtimeSocket.untraced,
    Layer.provideMerge(Layer.mergeAll(useCases, NodeSocket.layerWebSocketConstructor)),
    Layer.provideMerge(Server.listen({ host: "127.0.0.1", port: 0, grace: "1 second" }))
  )

export const portOf = (context: Context.Context<HttpServer.HttpServer>) => {
  const { address } = Context.get(context, HttpServer.HttpServer)
  if (address._tag !== "TcpAddress") throw new Error("The server listens on no port.")
  return address.port
}

export const address = Effect.map(
  Effect.context<HttpServer.HttpServer>(),
  (context) => `127.0.0.1:${portOf(context)}/api/realtime`
)

/** A frame as the server sent it. */
// oxlint-disable-next-line typescript/no-explicit-any -- tests look into it field by field
export type Json = any
export type Frames = ReadonlyArray<Json>

export interface Client {
  readonly frames: Array<Json>
  readonly protocol: () => string
  readonly send: (text: string) => void
  /** Closes the connection. */
  readonly close: () => void
  /** Returns once `done` holds for the frames so far. */
  readonly until: (done: (frames: Frames) => boolean) => Effect.Effect<void>
  /** The code that the socket was closed with. */
  readonly closed: Effect.Effect<number>
  /** False when the server refused the upgrade. */
  readonly opened: Effect.Effect<boolean>
}

/** A real client; `query` begins with `?`. */
export const connect = (query: string, protocols: ReadonlyArray<string> = []) =>
  Effect.gen(function* () {
    const make = yield* WebSocketConstructor
    const socket = make(`ws://${yield* address}${query}`, [...protocols])
    const frames: Array<Json> = []
    const listeners = new Set<() => void>()
    socket.addEventListener("message", ({ data }) => {
      frames.push(JSON.parse(String(data)))
      for (const listener of listeners) listener()
    })
    const opened = new Promise<boolean>((resolve) => {
      socket.addEventListener("open", () => resolve(true))
      socket.addEventListener("error", () => resolve(false))
    })
    const closed = new Promise<number>((resolve) =>
      socket.addEventListener("close", ({ code }) => resolve(code))
    )
    yield* Effect.addFinalizer(() => Effect.sync(() => socket.close()))
    const until: Client["until"] = (done) =>
      Effect.async<void>((resume) => {
        const check = () => {
          if (done(frames)) resume(Effect.void)
        }
        listeners.add(check)
        check()
        return Effect.sync(() => listeners.delete(check))
      }).pipe(
        Effect.timeoutFail({
          duration: "15 seconds",
          onTimeout: () => new Error(`Timed out; the frames so far: ${JSON.stringify(frames)}`)
        }),
        Effect.orDie
      )
    const client: Client = {
      frames,
      protocol: () => socket.protocol,
      send: (text) => socket.send(text),
      close: () => socket.close(),
      until,
      closed: Effect.promise(() => closed).pipe(Effect.timeout("15 seconds"), Effect.orDie),
      opened: Effect.promise(() => opened)
    }
    return client
  })

/** A client that upgrades by itself and then neither answers pings nor closes. */
export const connectUnresponsive = (port: number, query: string) =>
  Effect.gen(function* () {
    const socket = yield* Effect.acquireRelease(
      Effect.sync(() => Net.connect(port, "127.0.0.1")),
      (open) => Effect.sync(() => open.destroy())
    )
    const ended = new Promise<void>((resolve) => socket.on("close", () => resolve()))
    yield* Effect.async<void>((resume) => {
      socket.once("data", () => resume(Effect.void))
      socket.write(
        [
          `GET /api/realtime${query} HTTP/1.1`,
          "Host: 127.0.0.1",
          "Connection: Upgrade",
          "Upgrade: websocket",
          "Sec-WebSocket-Version: 13",
          "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
          "",
          ""
        ].join("\r\n")
      )
    })
    socket.resume()
    return { socket, ended: Effect.promise(() => ended).pipe(Effect.timeout("10 seconds"), Effect.orDie) }
  })

/** An empty conversation of a fresh agent. */
export const conversation = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const scope = yield* Fixtures.agent()
  const endUserId = yield* newId.endUser
  const id = yield* newId.conversation
  yield* sql`insert into end_users (id, tenant_id) values (${endUserId}, ${scope.tenantId})`
  yield* sql`
    insert into conversations (id, tenant_id, agent_id, end_user_id, channel)
    values (${id}, ${scope.tenantId}, ${scope.agentId}, ${endUserId}, 'api')`
  return { ...scope, id }
}).pipe(Effect.orDie)

/** Adds a message as a settled turn does, and signals it unless `silent`. */
export const addMessage = (conversationId: ConversationId, content: string, silent = false) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const feed = yield* RealtimeFeed
    const id: MessageId = yield* newId.message
    yield* sql`
      with c as (
        update conversations set message_count = message_count + 1 where id = ${conversationId}
        returning id, tenant_id, agent_id, message_count
      )
      insert into messages (id, tenant_id, conversation_id, agent_id, position, role, content)
      select ${id}, c.tenant_id, c.id, c.agent_id, c.message_count, 'user', ${content} from c`
    if (!silent) yield* feed.changed(conversationId, null)
    return id
  }).pipe(Effect.orDie)
