/** What is left of a contact after their erasure, and of contacts whose conversations, agents and tenants are deleted. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { withOwner } from "../../../src/concurrency/CurrentOwner.ts"
import { JobQueue } from "../../../src/capabilities/JobQueue.ts"
import type { InboundEvent } from "../../../src/domain/channels/Channel.ts"
import { keepsAll } from "../../../src/domain/accounts/Retention.ts"
import { EndUserId, TenantId } from "../../../src/domain/Ids.ts"
import { ExpiredRows } from "../../../src/store/accounts/ExpiredRows.ts"
import { AgentStore } from "../../../src/store/agents/Agents.ts"
import { InboundEvents } from "../../../src/store/channels/InboundEvents.ts"
import { EndUserStore } from "../../../src/store/conversations/EndUsers.ts"
import * as Rows from "../../../src/store/Rows.ts"
import { Inbound } from "../../../src/usecases/channels/Inbound.ts"
import * as Fixtures from "../../Fixtures.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"
import { accept, account, channelOf, inboundLayer, message, phone, receive, user } from "./InboundHarness.ts"

const Person = Schema.Struct({ id: EndUserId, tenantId: TenantId })

const number = "491700000001"

const live = Layer.mergeAll(inboundLayer(), EndUserStore.Default, ExpiredRows.Default)

const onFreshData = <A, E, R>(test: Effect.Effect<A, E, R>) =>
  Effect.zipRight(reset, Effect.provide(test, live))

/** Tables with a row that contains `text`. */
const tablesWith = (text: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const tables = yield* sql<{ readonly name: string }>`
      select quote_ident(tablename) as name from pg_tables where schemaname = 'public' order by 1`
    const found = yield* Effect.filter(tables, ({ name }) =>
      Effect.map(
        sql.unsafe(`select from ${name} t where to_jsonb(t)::text like '%${text}%' limit 1`),
        (rows) => rows.length > 0
      )
    )
    return found.map(({ name }) => name)
  })

const erasePeople = (sql: SqlClient.SqlClient, store: EndUserStore) =>
  Effect.gen(function* () {
    const people = yield* sql`select id, tenant_id as "tenantId" from end_users`.pipe(Rows.all(Person))
    for (const { id, tenantId } of people) {
      expect(yield* store.erase({ tenantId }, id, () => Effect.void)).toBe("erased")
    }
  })

eachEngineLive("A contact who is erased", (it) => {
  it.scoped("is in no table by their phone number, also where their events were queued", () =>
    Effect.gen(function* () {
      yield* channelOf(yield* Fixtures.agent())
      const asked = yield* message({ from: [user("DE.1"), phone(number)], text: "Hi" })
      yield* receive(asked, yield* message({ from: [phone(number)], text: "Anybody there?" }), {
        _tag: "AliasUpdate",
        channel: "whatsapp",
        accountId: account,
        aliases: [phone(number), user("DE.1")],
        timestamp: asked.timestamp
      })
      expect(yield* tablesWith(number)).toContain("end_user_aliases")
      yield* erasePeople(yield* SqlClient.SqlClient, yield* EndUserStore)
      expect(yield* tablesWith(number)).toEqual([])
    }).pipe(onFreshData)
  )

  it.scoped("is in no failed job, also if its event was removed before, or it was running", () =>
    Effect.gen(function* () {
      yield* channelOf(yield* Fixtures.agent())
      const sql = yield* SqlClient.SqlClient
      const { prune } = yield* InboundEvents
      yield* receive(yield* message({ from: [phone(number)], text: "Hi" }))
      yield* sql`delete from queue_jobs`
      const failed = sql`
        update queue_jobs set state = 'failed', finished_at = now(), lease_token = null, lease_until = null
        where queue = 'channel-inbound'`
      // An event of a month ago.
      yield* accept(yield* message({ from: [phone(number)], text: "First" }))
      yield* failed
      yield* sql`update channel_inbox set id = 'inb_00' || substr(id, 7), state = 'failed' where state = 'queued'`
      yield* sql`
        update queue_jobs set payload = jsonb_build_object('inboxId', 'inb_00' || substr(payload ->> 'inboxId', 7))`
      yield* accept(yield* message({ from: [phone(number)], text: "Second" }))
      yield* sql`
        update queue_jobs set state = 'active', lease_token = 'a', lease_until = now() + interval '1 minute'
        where state = 'waiting'`
      expect(yield* prune).toBe(false)
      expect(yield* sql`select state from queue_jobs where queue = 'channel-inbound'`).toEqual([
        { state: "active" }
      ])
      yield* erasePeople(sql, yield* EndUserStore)
      yield* failed
      expect(yield* tablesWith(number)).toEqual([])
    }).pipe(onFreshData)
  )

  it.scoped("does not come back with an event that was being processed", () =>
    Effect.gen(function* () {
      yield* channelOf(yield* Fixtures.agent())
      yield* receive(yield* message({ from: [phone(number)], text: "Hi" }))
      const event: InboundEvent = yield* message({ from: [phone(number)], text: "A late canary" })
      const sql = yield* SqlClient.SqlClient
      yield* sql`delete from queue_jobs`
      yield* accept(event)
      const people = yield* EndUserStore
      /** Erases everybody after a job has read its event. */
      const erasing = Layer.map(InboundEvents.Default, (context) => {
        const inbox = Context.get(context, InboundEvents)
        const event: typeof inbox.event = (given) =>
          Effect.tap(inbox.event(given), () => Effect.orDie(erasePeople(sql, people)))
        return Context.make(InboundEvents, InboundEvents.make({ ...inbox, event }))
      })
      yield* Effect.gen(function* () {
        const inbound = yield* Inbound
        yield* (yield* JobQueue).work("channel-inbound", 1, inbound.process)
      }).pipe(Effect.provide(Layer.fresh(inboundLayer(undefined, erasing))))
      const ended = sql`select from queue_jobs where state = 'completed'`
      yield* Effect.repeat(Effect.delay(ended, "50 millis"), { until: (rows) => rows.length > 0 })
      expect(yield* tablesWith("A late canary")).toEqual([])
      expect(yield* tablesWith(number)).toEqual([])
    }).pipe(onFreshData)
  )
})

eachEngineLive("What a contact wrote", (it) => {
  const canary = "A canary of the harbour"

  const written = Effect.gen(function* () {
    const scope = yield* Fixtures.agent()
    yield* channelOf(scope)
    yield* channelOf(yield* Fixtures.agent(), "1068")
    yield* receive(
      yield* message({ from: [phone(number)], text: canary }),
      yield* message({ from: [phone(number)], text: "Kept", accountId: "1068" })
    )
    expect(yield* tablesWith(canary)).toContain("channel_inbox")
    return scope
  })

  it.scoped(
    "is in no table once the conversation is older than the retention, and other events are kept",
    () =>
      Effect.gen(function* () {
        const { tenantId } = yield* written
        const sql = yield* SqlClient.SqlClient
        const rows = yield* ExpiredRows
        const expiry = { ...keepsAll, tenantId, seen: "", conversations: 7 }
        yield* sql`update agent_runs set status = 'complete'`
        yield* sql`update channel_outbox set state = 'sent'`
        yield* withOwner(tenantId)(rows.remove(expiry))
        expect(yield* tablesWith(canary)).toContain("channel_inbox")
        yield* sql`
        update conversations set created_at = now() - interval '9 days', updated_at = now() - interval '9 days', changed_at = null`
        yield* sql`update messages set created_at = now() - interval '9 days'`
        // Ids begin with their time.
        yield* sql`update channel_inbox set id = 'inb_00' || substr(id, 7)`
        yield* withOwner(tenantId)(rows.remove(expiry))
        expect(yield* tablesWith(canary)).toEqual([])
        expect(yield* tablesWith("Kept")).toEqual(expect.arrayContaining(["channel_inbox", "messages"]))
      }).pipe(onFreshData)
  )

  it.scoped("is in no table once the agent is deleted", () =>
    Effect.gen(function* () {
      const scope = yield* written
      yield* withOwner(scope.tenantId)((yield* AgentStore).remove(scope, scope.agentId))
      expect(yield* tablesWith(canary)).toEqual([])
      expect(yield* tablesWith("Kept")).toEqual(expect.arrayContaining(["channel_inbox", "messages"]))
    }).pipe(onFreshData)
  )
})
