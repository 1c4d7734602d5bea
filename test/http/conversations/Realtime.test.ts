import type * as HttpServer from "@effect/platform/HttpServer"
import * as SqlClient from "@effect/sql/SqlClient"
import { layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FastCheck from "effect/FastCheck"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Tracer from "effect/Tracer"
import * as Net from "node:net"
import { afterAll, describe, expect } from "vitest"
import { SecretBox } from "../../../src/capabilities/SecretBox.ts"
import type { GrantingCredential } from "../../../src/domain/accounts/Access.ts"
import type { TenantScope } from "../../../src/domain/accounts/Account.ts"
import { type ConversationId, newId, TenantId } from "../../../src/domain/Ids.ts"
import { RealtimeAccess } from "../../../src/usecases/chat/RealtimeAccess.ts"
import { RealtimeFeed } from "../../../src/usecases/conversations/RealtimeFeed.ts"
import * as Fixtures from "../../Fixtures.ts"
import { restoreIt } from "../../setup.ts"
import { reset, TestDatabase } from "../../TestDatabase.ts"
import * as Realtime from "./RealtimeServer.ts"

afterAll(() => Effect.runPromise(Effect.provide(reset, TestDatabase)))

const live = { timeout: "60 seconds", excludeTestServices: true } as const

const served = (limits?: Parameters<typeof Realtime.layer>[0]) =>
  Realtime.layer(limits).pipe(Layer.provideMerge(TestDatabase))

const tokenFor = (conversationId: ConversationId, by: GrantingCredential | null = null) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const [scope] = yield* sql<TenantScope>`
      select tenant_id as "tenantId" from conversations where id = ${conversationId}`
    const nobody = { tenantId: TenantId.make("ten_none") }
    return (yield* (yield* RealtimeAccess).issue(scope ?? nobody, conversationId, by)).realtimeToken
  })

/** Connected, and followed from now on. */
const follower = (
  conversationId: ConversationId,
  lastMessageId?: string,
  by: GrantingCredential | null = null
) =>
  Effect.gen(function* () {
    const token = yield* tokenFor(conversationId, by)
    const last = lastMessageId === undefined ? "" : `&lastMessageId=${lastMessageId}`
    const client = yield* Realtime.connect(`?token=${token}${last}`)
    expect(yield* client.opened).toBe(true)
    // A message arrives once the socket follows the conversation.
    if (lastMessageId === undefined) {
      const feed = yield* RealtimeFeed
      const ask = Effect.forever(Effect.delay(feed.typing(conversationId), "20 millis"))
      yield* Effect.raceFirst(
        ask,
        client.until((frames) => frames.length > 0)
      )
    }
    return client
  })

type Frames = Realtime.Frames
const ofType = (frames: Frames, type: string): Frames => frames.filter((frame) => frame.type === type)
const contents = (frames: Frames): ReadonlyArray<string> =>
  ofType(frames, "message.created").map(({ message }) => message.content)

layer(served(), live)("The realtime socket", (it) => {
  it.scoped("does not count a refused handshake against the limit of a conversation", () =>
    Effect.gen(function* () {
      const { id } = yield* Realtime.conversation
      const token = yield* tokenFor(id)
      const [host = "", port = ""] = (yield* Realtime.address).replace(/\/.*$/u, "").split(":")
      // Without a key. There are more of them than places.
      const head = `GET /api/realtime?token=${token} HTTP/1.1\r\nhost: a\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n`
      for (let times = 0; times < 40; times++) {
        const answer = yield* Effect.async<string>((resume) => {
          const socket = Net.connect(Number(port), host, () => socket.write(head))
          let text = ""
          socket.on("data", (data) => (text += data.toString()))
          socket.on("close", () => resume(Effect.succeed(text)))
        }).pipe(Effect.timeout("5 seconds"))
        expect(answer).toMatch(/^HTTP\/1\.1 400 /u)
      }
      yield* follower(id)
    })
  )

  it.scoped("sends every message, the user's included, with its conversation, role and time", () =>
    Effect.gen(function* () {
      const { id } = yield* Realtime.conversation
      const other = yield* Realtime.conversation
      const client = yield* follower(id)
      yield* Realtime.addMessage(other.id, "Not for you")
      const messageId = yield* Realtime.addMessage(id, "Hello")
      yield* client.until((frames) => contents(frames).length === 1)
      expect(ofType(client.frames, "message.created")).toEqual([
        {
          type: "message.created",
          conversationId: id,
          message: {
            id: messageId,
            role: "user",
            content: "Hello",
            createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
          }
        }
      ])
      expect(ofType(client.frames, "typing")[0]).toEqual({ type: "typing", conversationId: id })
    })
  )

  it.scoped("signals changes of the state, and sends a run's events as the end user may see them", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const feed = yield* RealtimeFeed
      const { agentId, id, tenantId } = yield* Realtime.conversation
      const client = yield* follower(id)
      const runId = yield* newId.run
      yield* sql`
        insert into agent_runs (id, tenant_id, agent_id, conversation_id, instance_id, user_message_id, user_message, period_start, status)
        values (${runId}, ${tenantId}, ${agentId}, ${id}, 'i', 'm', 'q', now(), 'complete')`
      yield* sql`
        insert into agent_run_events (tenant_id, run_id, sequence, type, status, label, payload, at)
        values (${tenantId}, ${runId}, 1, 'tool.started', 'running', 'Asking payroll', '{"secret":"hidden"}', now())`
      yield* sql`update conversations set state = 'HUMAN_REQUESTED' where id = ${id}`
      yield* feed.changed(id, runId)
      yield* feed.changed(id, runId)
      yield* Realtime.addMessage(id, "The end")
      yield* client.until((frames) => contents(frames).length === 1)
      expect(ofType(client.frames, "conversation.updated")).toEqual([
        { type: "conversation.updated", conversationId: id, state: "HUMAN_REQUESTED" }
      ])
      expect(ofType(client.frames, "run.event").map(({ event }) => event)).toEqual([
        {
          id: `${runId}:1`,
          runId,
          sequence: 1,
          type: "tool.started",
          status: "running",
          label: "Using a tool",
          timestamp: expect.stringMatching(/Z$/)
        }
      ])
    })
  )

  it.scoped("accepts the token as a subprotocol, and answers with it", () =>
    Effect.gen(function* () {
      const { id } = yield* Realtime.conversation
      const token = yield* tokenFor(id)
      yield* Realtime.addMessage(id, "Hello")
      const client = yield* Realtime.connect("?lastMessageId=none", [`spoke.${token}`])
      expect(yield* client.opened).toBe(true)
      expect(client.protocol()).toBe(`spoke.${token}`)
      yield* client.until((frames) => contents(frames).length === 1)
    })
  )

  it.scoped("accepts a client without a valid token, and closes with 4401", () =>
    Effect.gen(function* () {
      const { id, tenantId: owner } = yield* Realtime.conversation
      const box = yield* SecretBox
      const expires = 9_999_999_999_999
      const text = JSON.stringify({ conversationId: id, expires, owner })
      const token = yield* tokenFor(id)
      const bad = [
        "",
        "nonsense",
        `${token}x`,
        `x${token}`,
        yield* box.sign("cursor", text),
        yield* box.sign("realtime", "{}"),
        yield* box.sign("realtime", JSON.stringify({ conversationId: id, expires: 1_000, owner })),
        // Of no tenant, or another than the conversation's.
        yield* box.sign("realtime", JSON.stringify({ conversationId: id, expires })),
        yield* box.sign("realtime", JSON.stringify({ conversationId: id, expires, owner: "ten_other" })),
        // The conversation is gone, or never was.
        yield* box.sign("realtime", JSON.stringify({ conversationId: "cnv_none", expires, owner }))
      ]
      for (const one of bad) {
        const client = yield* Realtime.connect(`?token=${encodeURIComponent(one)}`)
        expect([one, yield* client.opened, yield* client.closed]).toEqual([one, true, 4401])
        expect(client.frames).toEqual([])
      }
      const without = yield* Realtime.connect("")
      expect(yield* without.closed).toBe(4401)
    })
  )

  it.scoped("closes with 4401 when the token expires while it is open", () =>
    Effect.gen(function* () {
      const { id, tenantId: owner } = yield* Realtime.conversation
      const box = yield* SecretBox
      const expires = Date.now() + 400
      const token = yield* box.sign("realtime", JSON.stringify({ conversationId: id, expires, owner }))
      const client = yield* Realtime.connect(`?token=${token}`)
      expect(yield* client.opened).toBe(true)
      expect(yield* client.closed).toBe(4401)
      expect(Date.now()).toBeGreaterThanOrEqual(expires)
    })
  )

  for (const [event, revoke] of [
    ["the key that the token was given to is revoked", "update api_keys set status = 'REVOKED'"],
    ["the key is made inactive", "update api_keys set status = 'INACTIVE'"],
    ["the key expires", "update api_keys set expires_at = now()"],
    ["the agent is deleted", "delete from agents"],
    ["the session that the token was given to is signed out", "delete from user_sessions"],
    ["the session expires", "update user_sessions set expires_at = now()"],
    ["the user is removed", "delete from users"]
  ] as const) {
    it.scoped(`sends nothing more and closes with 4401 once ${event}`, () =>
      Effect.gen(function* () {
        yield* reset
        const sql = yield* SqlClient.SqlClient
        const { agentId, id, tenantId } = yield* Realtime.conversation
        const { keyId } = yield* Fixtures.key({ agentId, tenantId, sourceScope: null })
        yield* sql`insert into users (id, tenant_id, email, role) values ('mbr_1', ${tenantId}, 'a@b.test', 'agent')`
        const hash = Buffer.from("a session")
        yield* sql`
          insert into user_sessions (tenant_id, token_hash, user_id, expires_at)
          values (${tenantId}, ${hash}, 'mbr_1', now() + interval '1 day')`
        const ofKey: GrantingCredential = { key: keyId }
        const ofSession: GrantingCredential = { session: hash.toString("base64url") }
        const [by, other] = /key|agent/u.test(event) ? [ofKey, ofSession] : [ofSession, ofKey]
        const client = yield* follower(id, undefined, by)
        const kept = yield* follower(id, undefined, other)
        const token = yield* tokenFor(id, by)
        yield* Realtime.addMessage(id, "Before")
        yield* client.until((frames) => contents(frames).length === 1)
        yield* sql.unsafe(revoke)
        const gone = event.includes("agent")
        if (!gone) yield* Realtime.addMessage(id, "After")
        expect(yield* client.closed).toBe(4401)
        expect(contents(client.frames)).toEqual(["Before"])
        const late = yield* Realtime.connect(`?token=${token}&lastMessageId=none`)
        expect([yield* late.closed, late.frames]).toEqual([4401, []])
        // Sockets with other credentials stay open.
        if (!gone) yield* kept.until((frames) => contents(frames).length === 2)
      })
    )
  }

  it.scoped("closes within seconds of a revocation, with any number of typing signals", () =>
    Effect.gen(function* () {
      yield* reset
      const sql = yield* SqlClient.SqlClient
      const { agentId, id, tenantId } = yield* Realtime.conversation
      const { keyId } = yield* Fixtures.key({ agentId, tenantId, sourceScope: null })
      const feed = yield* RealtimeFeed
      yield* Effect.forkScoped(Effect.forever(Effect.delay(feed.typing(id), "5 millis")))
      const client = yield* follower(id, undefined, { key: keyId })
      yield* sql`update api_keys set status = 'REVOKED'`
      expect(yield* client.closed).toBe(4401)
    })
  )

  it.scoped("signals to each side at intervals that the other is typing, and not to the typing side", () =>
    Effect.gen(function* () {
      yield* reset
      const sql = yield* SqlClient.SqlClient
      const feed = yield* RealtimeFeed
      const { id, tenantId } = yield* Realtime.conversation
      yield* sql`insert into users (id, tenant_id, email, role) values ('mbr_1', ${tenantId}, 'a@b.test', 'agent')`
      const hash = Buffer.from("a session")
      yield* sql`
        insert into user_sessions (token_hash, user_id, tenant_id, expires_at) values (${hash}, 'mbr_1', ${tenantId}, now() + interval '1 day')`
      const customer = yield* follower(id)
      const team = yield* follower(id, undefined, { session: hash.toString("base64url") })
      for (const by of ["team", "customer", "team", "customer"] as const) yield* feed.signalTyping(id, by)
      yield* Realtime.addMessage(id, "The end")
      const writers = (frames: Frames) => ofType(frames, "typing").flatMap(({ by }) => by ?? [])
      for (const [client, other] of [
        [customer, "team"],
        [team, "customer"]
      ] as const) {
        yield* client.until((frames) => contents(frames).length === 1)
        expect(writers(client.frames)).toEqual([other])
      }
    })
  )

  it.scoped("refuses requests without an upgrade, and other methods, in the envelope", () =>
    Effect.gen(function* () {
      const url = `http://${yield* Realtime.address}`
      const ask = (method: string) =>
        Effect.promise(async () => {
          const response = await fetch(`${url}?token=x`, { method })
          const body: Realtime.Json = await response.json()
          expect(body.meta).toEqual({ requestId: response.headers.get("x-request-id") })
          return [response.status, body.error.code]
        })
      expect(yield* ask("GET")).toEqual([400, "VALIDATION_ERROR"])
      expect(yield* ask("POST")).toEqual([405, "METHOD_NOT_ALLOWED"])
      const { id } = yield* Realtime.conversation
      const client = yield* Realtime.connect(`?token=${yield* tokenFor(id)}&lastMessageId=`)
      expect(yield* client.opened).toBe(false)
    })
  )

  it.scoped("sends the state and everything after lastMessageId in pages, then continues", () =>
    Effect.gen(function* () {
      const { id } = yield* Realtime.conversation
      const first = yield* Realtime.addMessage(id, "0")
      for (let place = 1; place <= 120; place++) yield* Realtime.addMessage(id, `${place}`, true)
      const client = yield* follower(id, first)
      yield* client.until((frames) => contents(frames).length === 120)
      yield* Realtime.addMessage(id, "121")
      yield* client.until((frames) => contents(frames).length === 121)
      expect(contents(client.frames)).toEqual(Array.from({ length: 121 }, (_, place) => `${place + 1}`))
      expect(ofType(client.frames, "conversation.updated")).toEqual([
        { type: "conversation.updated", conversationId: id, state: "AI_ACTIVE" }
      ])
    })
  )

  it.scoped("begins with the imported messages of a conversation for an id that it does not have", () =>
    Effect.gen(function* () {
      const { id } = yield* Realtime.conversation
      const messageId = yield* Realtime.addMessage(id, "Imported")
      yield* Realtime.addMessage(id, "Written here")
      // As the backfill numbers messages that were there before the others.
      const sql = yield* SqlClient.SqlClient
      yield* sql`update messages set position = position - 1 where conversation_id = ${id}`
      yield* sql`update conversations set message_count = 1, legacy_count = 1 where id = ${id}`
      const whole = yield* follower(id, "none")
      const rest = yield* follower(id, messageId)
      for (const client of [whole, rest])
        yield* client.until((frames) => contents(frames).includes("Written here"))
      expect(contents(rest.frames)).toEqual(["Written here"])
      expect(contents(whole.frames)).toEqual(["Imported", "Written here"])
    })
  )

  it.scoped("recovers from a lost signal within a few seconds", () =>
    Effect.gen(function* () {
      const { id } = yield* Realtime.conversation
      const client = yield* follower(id)
      yield* Realtime.addMessage(id, "Unheard", true)
      yield* client.until((frames) => contents(frames).length === 1)
    })
  )

  it.scoped("closes when the client sends too much", () =>
    Effect.gen(function* () {
      const { id } = yield* Realtime.conversation
      const client = yield* follower(id)
      client.send("x".repeat(100_000))
      expect([1006, 1009]).toContain(yield* client.closed)
    })
  )

  it.scoped(
    "loses and repeats nothing when the connection breaks at any point",
    () =>
      Effect.gen(function* () {
        const runtime = yield* Effect.runtime<Layer.Layer.Success<ReturnType<typeof served>>>()
        const run = (batches: ReadonlyArray<readonly [apart: number, together: number, silent: boolean]>) =>
          Effect.gen(function* () {
            const { id } = yield* Realtime.conversation
            const seen: Array<string> = []
            let last = "none"
            let said = 0
            const speak = (count: number, silent: boolean) =>
              Effect.gen(function* () {
                for (let place = 0; place < count; place++)
                  yield* Realtime.addMessage(id, `${said++}`, silent)
              })
            for (const [apart, together, silent] of batches) {
              // Some messages before the socket opens, some while it opens; then the connection breaks at a random point.
              yield* speak(apart, silent)
              yield* Effect.gen(function* () {
                const client = yield* Realtime.connect(`?token=${yield* tokenFor(id)}&lastMessageId=${last}`)
                const speaking = yield* Effect.fork(speak(together, silent))
                yield* client.until((frames) => contents(frames).length >= Math.min(1, said - seen.length))
                client.close()
                yield* client.closed
                const frames = ofType(client.frames, "message.created")
                last = frames.at(-1)?.message.id ?? last
                seen.push(...contents(frames))
                yield* speaking.await
              }).pipe(Effect.scoped)
            }
            yield* Effect.gen(function* () {
              const client = yield* Realtime.connect(`?token=${yield* tokenFor(id)}&lastMessageId=${last}`)
              yield* client.until((frames) => contents(frames).length >= said - seen.length)
              seen.push(...contents(client.frames))
            }).pipe(Effect.scoped)
            expect(seen).toEqual(Array.from({ length: said }, (_, place) => `${place}`))
          }).pipe(Effect.provide(runtime), Effect.runPromise)
        const batch = FastCheck.tuple(
          FastCheck.integer({ min: 0, max: 4 }),
          FastCheck.integer({ min: 0, max: 6 }),
          FastCheck.boolean()
        )
        const batches = FastCheck.array(batch, { minLength: 1, maxLength: 5 })
        yield* Effect.promise(() => FastCheck.assert(FastCheck.asyncProperty(batches, run), { numRuns: 25 }))
      }),
    60_000
  )
  restoreIt()
})

layer(served({ sockets: 1 }), live)("A server without a place left", (it) => {
  it.scoped("refuses the upgrade, until a place is free again", () =>
    Effect.gen(function* () {
      const { id } = yield* Realtime.conversation
      const client = yield* follower(id)
      const refused = yield* Realtime.connect(`?token=${yield* tokenFor(id)}`)
      expect(yield* refused.opened).toBe(false)
      client.close()
      yield* client.closed
      const again = Effect.flatMap(tokenFor(id), (token) => Realtime.connect(`?token=${token}`)).pipe(
        Effect.flatMap(({ opened }) => opened)
      )
      yield* again.pipe(Effect.repeat({ until: (opened) => opened, times: 200 }))
    })
  )
  restoreIt()
})

layer(served({ sockets: 100, socketsPerConversation: 2 }), live)("A visitor with one token", (it) => {
  it.scoped("opens a limited number of sockets, and does not block others", () =>
    Effect.gen(function* () {
      const [{ id }, other] = [yield* Realtime.conversation, yield* Realtime.conversation]
      const token = yield* tokenFor(id)
      const opened = yield* Effect.forEach([1, 2, 3, 4, 5], () =>
        Effect.flatMap(Realtime.connect(`?token=${token}`), (client) => client.opened)
      )
      expect(opened.filter((isOpen) => isOpen)).toHaveLength(2)
      yield* follower(other.id)
    })
  )
  restoreIt()
})

describe("The connection", () => {
  const spans: Array<string> = []
  const native = Tracer.make({
    span: (...[name, parent, context, links, startTime, kind, options]) => {
      const attributes = new Map<string, unknown>(Object.entries(options?.attributes ?? {}))
      const status: Tracer.SpanStatus = { _tag: "Started", startTime }
      return {
        _tag: "Span",
        name,
        spanId: "1",
        traceId: "1",
        parent,
        context,
        status,
        attributes,
        links,
        sampled: true,
        kind,
        end: () => void spans.push(name, JSON.stringify([...attributes])),
        attribute: (key, value) => void attributes.set(key, value),
        event: () => undefined,
        addLinks: () => undefined
      }
    },
    context: (run) => run()
  })

  layer(served().pipe(Layer.provide(Layer.setTracer(native))), live)("that is traced", (it) => {
    it.scoped("leaves no token in a span", () =>
      Effect.gen(function* () {
        const { id } = yield* Realtime.conversation
        const client = yield* follower(id)
        client.close()
        yield* client.closed
        const url = `http://${yield* Realtime.address}`
        yield* Effect.promise(() => fetch(`${url}/elsewhere`))
        expect(spans.join("\n")).toContain("elsewhere")
        expect(spans.join("\n")).not.toContain("token")
      })
    )
    restoreIt()
  })

  layer(served(), live)("of a client that reads slowly", (it) => {
    it.scoped("does not block others, and gets everything once it continues to read", () =>
      Effect.gen(function* () {
        const { id } = yield* Realtime.conversation
        const first = yield* Realtime.addMessage(id, "first")
        const text = "x".repeat(30_000)
        for (let place = 0; place < 300; place++) yield* Realtime.addMessage(id, text, true)
        yield* Realtime.addMessage(id, "the last of all", true)
        const port = Realtime.portOf(yield* Effect.context<HttpServer.HttpServer>())
        const { socket } = yield* Realtime.connectUnresponsive(
          port,
          `?token=${yield* tokenFor(id)}&lastMessageId=${first}`
        )
        socket.pause()
        // Another follower gets all of it meanwhile: the slow one delays no other.
        const quick = yield* follower(id, first)
        yield* quick.until((frames) => contents(frames).includes("the last of all"))
        const all = Effect.async<void>((resume) => {
          socket.on("data", (data: Buffer) => {
            if (data.includes("the last of all")) resume(Effect.void)
          })
        })
        socket.resume()
        yield* all.pipe(Effect.timeout("15 seconds"))
      })
    )
    restoreIt()
  })

  layer(served({ pingEvery: "100 millis" }), live)("of a client", (it) => {
    it.scoped("is closed when it does not answer pings, and stays open while it does", () =>
      Effect.gen(function* () {
        const { id } = yield* Realtime.conversation
        const token = yield* tokenFor(id)
        const client = yield* follower(id)
        const port = Realtime.portOf(yield* Effect.context<HttpServer.HttpServer>())
        const { ended } = yield* Realtime.connectUnresponsive(port, `?token=${token}`)
        yield* ended
        yield* Realtime.addMessage(id, "Still here?")
        yield* client.until((frames) => contents(frames).length === 1)
      })
    )
    restoreIt()
  })

  layer(TestDatabase, live)("of a server that stops", (it) => {
    it.scoped("is closed with 1001, and an unresponsive client does not block the server's stop", () =>
      Effect.gen(function* () {
        const scope = yield* Scope.make()
        const context = yield* Layer.buildWithScope(Realtime.layer(), scope)
        yield* Effect.gen(function* () {
          const { id } = yield* Realtime.conversation
          const client = yield* follower(id)
          const { ended } = yield* Realtime.connectUnresponsive(
            Realtime.portOf(context),
            `?token=${yield* tokenFor(id)}`
          )
          const begun = Date.now()
          yield* Scope.close(scope, Exit.void).pipe(Effect.timeout("10 seconds"))
          expect(Date.now() - begun).toBeLessThan(5_000)
          expect(yield* client.closed).toBe(1001)
          yield* ended
        }).pipe(Effect.provide(context))
      })
    )
    restoreIt()
  })
})
