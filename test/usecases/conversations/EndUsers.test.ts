import { expect } from "@effect/vitest"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Chunk from "effect/Chunk"
import * as DateTime from "effect/DateTime"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import * as DerivedKeys from "../../../src/capabilities/SecretBox/DerivedKeys.ts"
import { ArtifactStore, layerMemory } from "../../../src/capabilities/ArtifactStore.ts"
import { layerTable } from "../../../src/capabilities/JobQueue/Table.ts"
import type { ReadScope } from "../../../src/domain/accounts/Access.ts"
import type { StoredAttachment } from "../../../src/domain/channels/Attachment.ts"
import { ExternalEndUserId } from "../../../src/domain/chat/ChatTurn.ts"
import { EndUserId, newId, QueueJobId, TenantId, TokenId } from "../../../src/domain/Ids.ts"
import type { JsonObject } from "../../../src/domain/Text.ts"
import { ManageAnswerStore } from "../../../src/store/accounts/ManageAnswers.ts"
import { ArtifactRows } from "../../../src/store/knowledge/ArtifactRows.ts"
import { EndUserStore } from "../../../src/store/conversations/EndUsers.ts"
import { Turns } from "../../../src/store/chat/Turns.ts"
import { hashOf, RepeatedRequests } from "../../../src/usecases/accounts/RepeatedRequests.ts"
import { Artifacts } from "../../../src/usecases/knowledge/Artifacts.ts"
import { EndUsers } from "../../../src/usecases/conversations/EndUsers.ts"
import * as Fixtures from "../../Fixtures.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"

const Live = EndUsers.Default.pipe(
  Layer.provideMerge(Artifacts.Default),
  Layer.provideMerge(
    Layer.mergeAll(EndUserStore.Default, Turns.Default, ArtifactRows.Default, layerMemory, layerTable)
  ),
  Layer.provideMerge(
    RepeatedRequests.Default.pipe(
      Layer.provide([
        ManageAnswerStore.Default,
        DerivedKeys.layer([Redacted.make("a master secret of these tests, long enough")])
      ])
    )
  )
)

/** In everything that the person says, is told, is called, and that tools were told about them. */
const canary = "canary-5b1e7"

const begin = (
  scope: ReadScope,
  person: string,
  message: string,
  attachments: ReadonlyArray<StoredAttachment> = []
) =>
  Effect.gen(function* () {
    const turns = yield* Turns
    const runId = yield* newId.run
    const { endUserId } = yield* turns.begin(scope, {
      target: { _tag: "External", id: ExternalEndUserId.make(person) },
      persist: true,
      channel: "api",
      instanceId: "instance",
      runId,
      endUserId: yield* newId.endUser,
      conversationId: yield* newId.conversation,
      userMessageId: yield* newId.message,
      message,
      attachments,
      startedAt: yield* DateTime.now,
      startedLabel: "Started",
      timeout: "1 minute"
    })
    return { runId, endUserId: EndUserId.make(endUserId ?? "") }
  })

const turn = (
  scope: ReadScope,
  person: string,
  text: string,
  attachments: ReadonlyArray<StoredAttachment> = []
) =>
  Effect.gen(function* () {
    const turns = yield* Turns
    const { endUserId, runId } = yield* begin(scope, person, `${text} asks`, attachments)
    const reply = { id: yield* newId.message, content: `${text} is told`, citations: [] }
    const event = {
      id: `${runId}:2`,
      runId,
      sequence: 2,
      type: "tool.completed" as const,
      status: "complete" as const,
      label: "Tool",
      timestamp: yield* DateTime.now,
      payload: { output: `${text} bought a hat` }
    }
    yield* turns.settle(scope, {
      runId,
      counted: true,
      inputTokens: 1,
      outputTokens: 1,
      reply,
      events: [event]
    })
    return endUserId
  })

/** Every row of every table, as text. */
const dump = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const tables = yield* sql<{ readonly name: string }>`
    select quote_ident(tablename) as name from pg_tables where schemaname = 'public'`
  const rows = yield* Effect.forEach(tables, ({ name }) =>
    sql.unsafe<{ readonly text: string }>(`select to_jsonb(t)::text as text from ${name} t`)
  )
  return rows
    .flat()
    .map(({ text }) => text)
    .join("\n")
})

/** What providers delivered: who wrote, what, and to which account. */
const deliver = (given: ReadonlyArray<readonly [from: string, text: string, account?: string]>) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    for (const [place, [value, text, account = "ours"]] of given.entries()) {
      const event = { _tag: "Message", from: [{ kind: "phone", value }], text }
      const raw = { message: { from: value, text: { body: text } } }
      yield* sql`
        insert into channel_inbox (id, channel, account_id, message_id, event, raw)
        values (${`inb_${place}`}, 'whatsapp', ${account}, ${`wamid.${place}`},
          ${JSON.stringify(event)}::jsonb, ${JSON.stringify(raw)}::jsonb)`
    }
  })

const knownBy = (scope: ReadScope, id: EndUserId, value: string) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql`
      insert into end_user_aliases (tenant_id, channel, kind, value, end_user_id)
      values (${scope.tenantId}, 'whatsapp', 'phone', ${value}, ${id})`
  )

const reachedAt = (scope: ReadScope, account: string, active = true) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* sql`
      insert into channels (id, tenant_id, agent_id, channel, external_id, access_token, active)
      values (${yield* newId.channel}, ${scope.tenantId}, ${scope.agentId}, 'whatsapp', ${account}, 'sealed', ${active})`
  })

const leftInInbox = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ readonly id: string }>`select id from channel_inbox order by id`
  return rows.map(({ id }) => id)
})

eachEngineLive("the data of an end user", (it, engine) => {
  it.effect("is erased everywhere with the end user, and nobody else's is", () =>
    Effect.gen(function* () {
      yield* reset
      const scope = yield* Fixtures.agent()
      const endUsers = yield* EndUsers
      const id = yield* turn(scope, `${canary}@example.com`, canary)
      yield* turn(scope, `${canary}@example.com`, canary)
      yield* turn(scope, "sue@example.com", "Sue")
      yield* knownBy(scope, id, "491700000001")
      yield* deliver([
        ["491700000001", canary],
        ["4917000000012", "somebody else's"]
      ])
      expect(yield* dump).toContain(canary)
      yield* endUsers.erase(scope, id)
      const left = yield* dump
      expect(left).not.toContain(canary)
      expect(left).not.toContain('491700000001"')
      expect(left).toContain("Sue asks")
      expect(left).toContain("Sue bought a hat")
      expect((yield* Effect.flip(endUsers.erase(scope, id)))._tag).toBe("NOT_FOUND")
    }).pipe(Effect.provide(Live))
  )

  it.effect("includes the providers' deliveries of their messages, and nothing from or to anybody else", () =>
    Effect.gen(function* () {
      yield* reset
      const sql = yield* SqlClient.SqlClient
      const scope = yield* Fixtures.agent()
      const other = yield* Fixtures.agent()
      const [phone, stranger] = ["491700000001", "491700000002"]
      const id = yield* turn(scope, "joe@example.com", "Joe")
      yield* knownBy(scope, id, phone)
      yield* knownBy(other, yield* turn(other, "joe@example.com", "Joe"), phone)
      yield* reachedAt(scope, "ours")
      yield* reachedAt(other, "theirs")
      yield* reachedAt(other, "theirs, paused", false)
      // An account that has gone from one tenant to the other.
      yield* reachedAt(scope, "moved", false)
      yield* reachedAt(other, "moved")
      yield* deliver([
        [phone, "to us"],
        [phone, "to another tenant", "theirs"],
        [phone, "to another tenant, later", "theirs, paused"],
        [stranger, phone],
        [phone, "to nobody's account", "gone"],
        [phone, "when the account was ours", "moved"],
        [phone, "since it is theirs", "moved"]
      ])
      yield* sql`
        update conversations set channel = 'whatsapp'
        where id = (select min(id) from conversations where end_user_id = ${id})`
      yield* sql`
        update messages set channel_message_id = 'wamid.5'
        where id = (select min(m.id) from messages m join conversations c on c.id = m.conversation_id
          where c.end_user_id = ${id})`
      yield* (yield* EndUsers).erase(scope, id)
      expect(yield* leftInInbox).toEqual(["inb_1", "inb_2", "inb_3", "inb_6"])
    }).pipe(Effect.provide(Live))
  )

  it.effect("includes the files that they sent, except those that somebody else sent too", () =>
    Effect.gen(function* () {
      yield* reset
      const scope = yield* Fixtures.agent()
      const artifacts = yield* Artifacts
      const file = (text: string) =>
        Effect.gen(function* () {
          const { claim, ref } = yield* artifacts.keep(Buffer.from(text))
          const stored = {
            artifact: ref,
            mimeType: "application/pdf",
            name: `${text}.pdf`,
            size: text.length
          }
          return { stored, release: artifacts.abandon({ claim, ref }) }
        })
      const [own, shared] = [yield* file(canary), yield* file("a price list")]
      const id = yield* turn(scope, "joe@example.com", "Joe", [own.stored, shared.stored])
      yield* turn(scope, "sue@example.com", "Sue", [shared.stored])
      yield* own.release
      yield* shared.release
      const store = yield* ArtifactStore
      const sql = yield* SqlClient.SqlClient
      /** What is due is done. */
      const tidied = Effect.gen(function* () {
        const jobs = yield* sql<{ readonly payload: JsonObject }>`
          delete from queue_jobs where queue = 'artifact-cleanup' returning payload`
        for (const { payload } of jobs) {
          yield* artifacts.process({
            id: QueueJobId.make("qjb_1"),
            queue: "artifact-cleanup",
            payload,
            attempt: 1,
            lastAttempt: false
          })
        }
        return yield* Effect.forEach([own, shared], ({ stored }) =>
          Effect.map(store.get(stored.artifact), Option.isSome)
        )
      })
      expect(yield* tidied).toEqual([true, true])
      yield* (yield* EndUsers).erase(scope, id)
      expect(yield* tidied).toEqual([false, true])
    }).pipe(Effect.provide(Live))
  )

  it.effect("is not erased while one of their turns runs: CONFLICT", () =>
    Effect.gen(function* () {
      yield* reset
      const sql = yield* SqlClient.SqlClient
      const scope = yield* Fixtures.agent()
      const endUsers = yield* EndUsers
      yield* sql`insert into instances (id, lease_until) values ('instance', now() + interval '1 hour')`
      const { endUserId } = yield* begin(scope, "ada@example.com", canary)
      expect((yield* Effect.flip(endUsers.erase(scope, endUserId)))._tag).toBe("CONFLICT")
      expect(yield* dump).toContain(canary)
      // Its process has died: there is no writer left.
      yield* sql`update instances set lease_until = now() - interval '1 second'`
      yield* endUsers.erase(scope, endUserId)
      expect(yield* dump).not.toContain(canary)
    }).pipe(Effect.provide(Live))
  )

  // The embedded database has one connection: nothing waits there.
  it.effect.skipIf(engine === "embedded")("is erased by a second attempt after a deadlock", () =>
    Effect.gen(function* () {
      yield* reset
      const sql = yield* SqlClient.SqlClient
      const scope = yield* Fixtures.agent()
      const id = yield* turn(scope, "ada@example.com", canary)
      const [locked, crossing] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      // Locks the turn, and then the person, whom the erasure has locked. Only the erasure detects deadlocks.
      const other = yield* Effect.gen(function* () {
        yield* sql`set local deadlock_timeout = '1min'`
        yield* sql`select id from agent_runs where tenant_id = ${scope.tenantId} for update`
        yield* Deferred.succeed(locked, undefined)
        yield* Deferred.await(crossing)
        yield* sql`select id from end_users where tenant_id = ${scope.tenantId} and id = ${id} for key share`
      }).pipe(sql.withTransaction, Effect.fork)
      yield* Deferred.await(locked)
      const erasing = yield* Effect.fork((yield* EndUsers).erase(scope, id))
      yield* sql`
        select from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query like '%delete from end_users%'`.pipe(
        Effect.repeat({ until: (rows) => rows.length > 0 }),
        Effect.timeout("20 seconds")
      )
      yield* Deferred.succeed(crossing, undefined)
      yield* Fiber.join(other)
      yield* Fiber.join(erasing)
      expect(yield* dump).not.toContain(canary)
    }).pipe(Effect.provide(Live))
  )

  it.effect("is exported completely, ends with its count, and is found by the caller's own id", () =>
    Effect.gen(function* () {
      yield* reset
      const sql = yield* SqlClient.SqlClient
      const scope = yield* Fixtures.agent()
      const endUsers = yield* EndUsers
      const id = yield* turn(scope, "ada@example.com", canary)
      yield* turn(scope, "sue@example.com", "Sue")
      // More messages than one page holds.
      yield* sql`
        insert into messages (id, tenant_id, conversation_id, agent_id, position, role, content)
        select 'msg_0' || lpad(n::text, 6, '0'), c.tenant_id, c.id, c.agent_id, 10 + n, 'user', 'number ' || n
        from conversations c, generate_series(1, 450) n where c.end_user_id = ${id}`
      const page = yield* endUsers.list(scope, { limit: 10, externalId: "ada@example.com" })
      expect(page.rows.map((row) => [row.id, row.conversations])).toEqual([[id, 1]])
      const lines = Chunk.toReadonlyArray(yield* Stream.runCollect(yield* endUsers.exportData(scope, id)))
      expect(lines[0]).toMatchObject({ type: "end_user", id, externalId: "ada@example.com" })
      expect(lines.filter(({ type }) => type === "message")).toHaveLength(452)
      expect(new Set(lines.map((line) => JSON.stringify(line))).size).toBe(lines.length)
      expect(lines.find(({ type }) => type === "run")).toMatchObject({
        status: "complete",
        events: [{ type: "run.started" }, { payload: { output: `${canary} bought a hat` } }]
      })
      expect(lines.at(-1)).toEqual({ type: "end", lines: lines.length - 1 })
      expect(JSON.stringify(lines)).not.toContain("Sue")
    }).pipe(Effect.provide(Live))
  )

  it.effect("is in no answer for a repeated request, and answers of other tenants are kept", () =>
    Effect.gen(function* () {
      yield* reset
      const scope = yield* Fixtures.agent()
      const other = yield* Fixtures.agent()
      const requests = yield* RepeatedRequests
      const answer = { status: 201, contentType: "application/json", body: canary }
      const requestOf = ({ tenantId }: ReadScope) => ({
        tenantId,
        tokenId: TokenId.make("tok_1"),
        idempotencyKey: "note-1",
        requestHash: hashOf("/api/manage/v1/conversations/cnv_1/notes")
      })
      const id = yield* turn(scope, "ada@example.com", canary)
      for (const tenant of [scope, other]) {
        yield* requests.begin(requestOf(tenant))
        yield* requests.end(requestOf(tenant), answer)
      }
      expect(yield* requests.begin(requestOf(scope))).toEqual(Option.some(answer))
      yield* (yield* EndUsers).erase(scope, id)
      expect((yield* Effect.flip(requests.begin(requestOf(scope))))._tag).toBe("CONFLICT")
      expect(yield* requests.begin(requestOf(other))).toEqual(Option.some(answer))
    }).pipe(Effect.provide(Live))
  )

  it.effect("belongs to one tenant", () =>
    Effect.gen(function* () {
      yield* reset
      const scope = yield* Fixtures.agent()
      const endUsers = yield* EndUsers
      const id = yield* turn(scope, "ada@example.com", canary)
      const stranger = { tenantId: TenantId.make("ten_other") }
      expect((yield* Effect.flip(endUsers.erase(stranger, id)))._tag).toBe("NOT_FOUND")
      expect((yield* Effect.flip(endUsers.exportData(stranger, id)))._tag).toBe("NOT_FOUND")
      expect((yield* endUsers.list(stranger, { limit: 10 })).rows).toEqual([])
      const { find } = yield* EndUserStore
      expect(Option.isSome(yield* find(scope, id))).toBe(true)
    }).pipe(Effect.provide(Live))
  )
})
