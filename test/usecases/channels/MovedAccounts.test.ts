/** An account that another tenant had before: what was delivered to that tenant stays theirs. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { AgentScope } from "../../../src/domain/accounts/Access.ts"
import { EndUserId } from "../../../src/domain/Ids.ts"
import { EndUserStore } from "../../../src/store/conversations/EndUsers.ts"
import { HeldJobs } from "../../../src/store/moves/HeldJobs.ts"
import * as Rows from "../../../src/store/Rows.ts"
import { EndUsers } from "../../../src/usecases/conversations/EndUsers.ts"
import * as Fixtures from "../../Fixtures.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"
import { accept, channelOf, inboundLayer, message, receive } from "./InboundHarness.ts"

const live = EndUsers.Default.pipe(
  Layer.provideMerge(inboundLayer()),
  Layer.provideMerge(Layer.mergeAll(EndUserStore.Default, HeldJobs.Default))
)

const onFreshData = <A, E, R>(test: Effect.Effect<A, E, R>) =>
  Effect.zipRight(reset, Effect.provide(test, live))

/** A message that is stored, and its job ended. */
const received = (text: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* receive(yield* message({ text }))
    yield* sql`update queue_jobs set state = 'completed', finished_at = now() where state = 'waiting'`
  })

/** A failed job of an event. */
const failedJob = (text: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* accept(yield* message({ text }))
    yield* sql`update queue_jobs set state = 'failed', finished_at = now() where state = 'waiting'`
    yield* sql`update channel_inbox set state = 'failed' where state = 'queued'`
  })

/** What the tenant's archive, and the export of its person, have of deliveries. */
const told = ({ tenantId }: AgentScope) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const jobs = yield* HeldJobs
    const { events } = yield* jobs.readEvents(tenantId, "")
    const { jobs: held } = yield* jobs.ofTenant(tenantId, "")
    const [person] = yield* sql`select id from end_users where tenant_id = ${tenantId}`.pipe(
      Rows.all(Schema.Struct({ id: EndUserId }))
    )
    const lines =
      person === undefined
        ? []
        : Chunk.toReadonlyArray(
            yield* Stream.runCollect(yield* (yield* EndUsers).exportData({ tenantId }, person.id))
          )
    const texts = (value: unknown) =>
      ["First", "Lost", "Second", "Missed"].filter((text) => JSON.stringify(value).includes(text))
    return {
      events: texts(events),
      jobs: texts(held),
      person: lines.filter(({ type }) => type === "delivery").length
    }
  })

eachEngineLive("An account of a provider that moves to another tenant", (it) => {
  for (const [when, isEarly] of [
    ["configured then", false],
    ["configured before, while it was inactive", true]
  ] as const) {
    it.scoped(`${when}, brings nothing of what was delivered before`, () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const [first, second] = [yield* Fixtures.agent(), yield* Fixtures.agent()]
        const deactivateAll = sql`update channels set active = false, updated_at = clock_timestamp()`
        const configure = (scope: AgentScope) =>
          Effect.zipRight(
            deactivateAll,
            Effect.flatMap(
              channelOf(scope),
              (id) => sql`update channels set created_at = clock_timestamp() where id = ${id}`
            )
          )
        const early = isEarly ? configure(second) : Effect.void
        yield* early
        yield* deactivateAll
        yield* configure(first)
        yield* received("First")
        yield* failedJob("Lost")
        const before = yield* told(first)
        expect(before).toEqual({
          events: isEarly ? ["First"] : ["First", "Lost"],
          jobs: ["Lost"],
          person: isEarly ? 1 : 2
        })
        if (isEarly) {
          yield* deactivateAll
          yield* sql`update channels set active = true where tenant_id = ${second.tenantId}`
        } else yield* configure(second)
        yield* received("Second")
        expect(yield* told(second)).toEqual({ events: ["Second"], jobs: [], person: 1 })
        yield* failedJob("Missed")
        expect((yield* told(second)).jobs).toEqual(["Missed"])
        // The second tenant has moved to another installation.
        expect(yield* (yield* HeldJobs).removeEvents(second.tenantId)).toBe(false)
        const left = yield* sql`select event from channel_inbox order by received_at`
        expect(left.map(({ event }) => JSON.stringify(event))).toEqual([
          expect.stringContaining("First"),
          expect.stringContaining("Lost")
        ])
      }).pipe(onFreshData)
    )
  }

  it.scoped(
    "keeps the deliveries of before when its next tenant has moved away, also those of a removed account",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const [first, second] = [yield* Fixtures.agent(), yield* Fixtures.agent()]
        yield* channelOf(first)
        yield* received("First")
        yield* sql`delete from channels`
        yield* channelOf(second)
        yield* failedJob("Missed")
        expect(yield* told(second)).toEqual({ events: ["Missed"], jobs: ["Missed"], person: 0 })
        const { removeEvents } = yield* HeldJobs
        yield* removeEvents(second.tenantId)
        yield* sql`delete from channels`
        yield* removeEvents(second.tenantId)
        const left = yield* sql`select event from channel_inbox`
        expect(left.map(({ event }) => JSON.stringify(event))).toEqual([expect.stringContaining("First")])
      }).pipe(onFreshData)
  )
})
