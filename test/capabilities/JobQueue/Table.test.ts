import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Record from "effect/Record"
import * as Schedule from "effect/Schedule"
import { JobQueue, policies } from "../../../src/capabilities/JobQueue.ts"
import { expireLeases, layerTableWith } from "../../../src/capabilities/JobQueue/Table.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"

eachEngineLive("a store that one process holds alone", (it) => {
  it.effect("goes on at once with what ran, and with what waits because the clock was set back", () =>
    Effect.gen(function* () {
      yield* reset
      const sql = yield* SqlClient.SqlClient
      const job = (id: string, state: string, created: string, due: string) => sql`
        insert into queue_jobs (id, queue, payload, state, max_attempts, created_at, run_at, lease_token, lease_until)
        values (${id}, 'ingestion', '{}'::jsonb, ${state}, 3, now() + ${created}::interval, now() + ${due}::interval,
          ${state === "active" ? "somebody" : null}, ${state === "active" ? sql`now() + interval '1 minute'` : null})`
      yield* job("running", "active", "-1 minute", "-1 minute")
      yield* job("of-later", "waiting", "1 hour", "1 hour")
      yield* job("put-off-later", "waiting", "-1 minute", "62 minutes")
      yield* job("put-off", "waiting", "-1 minute", "30 minutes")
      yield* expireLeases
      const due = yield* sql<{ readonly id: string }>`
        select id from queue_jobs
        where state = 'waiting' and run_at <= clock_timestamp() or lease_until < clock_timestamp()
        order by id`
      expect(due.map(({ id }) => id)).toEqual(["of-later", "put-off-later", "running"])
    })
  )
})

eachEngineLive("a store whose clock is set back while it is worked on", (it) => {
  it.scoped("keeps no job waiting, nor one of a dead worker held, until the later time has come", () =>
    Effect.gen(function* () {
      yield* reset
      const sql = yield* SqlClient.SqlClient
      const row = (id: string, state: string, created: string, due: string) => sql`
        insert into queue_jobs (id, queue, payload, state, max_attempts, created_at, run_at, lease_token, lease_until)
        values (${id}, 'embedding', '{}'::jsonb, ${state}, 3, now() + ${created}::interval, now() + ${due}::interval,
          ${state === "active" ? "somebody" : null}, ${state === "active" ? sql`now() + interval '5 hours'` : null})`
      // As written while it was five hours ahead.
      yield* row("waits", "waiting", "5 hours", "5 hours")
      yield* row("tried-again", "waiting", "-1 minute", "5 hours")
      yield* row("died", "active", "-1 minute", "-1 minute")
      // And as it should be.
      yield* row("put-off", "waiting", "-1 minute", "30 minutes")
      const done: Array<string> = []
      const quick = {
        policies: Record.map(policies, (policy) => ({ ...policy, lease: "900 millis" as const }))
      }
      const { work } = Context.get(yield* Layer.build(layerTableWith(quick)), JobQueue)
      yield* work("embedding", 4, ({ id }) => Effect.sync(() => done.push(id)))
      yield* Effect.sync(() => done.length).pipe(
        Effect.repeat({ until: (count) => count === 3, schedule: Schedule.spaced("50 millis") }),
        Effect.timeout("20 seconds")
      )
      expect(done.toSorted()).toEqual(["died", "tried-again", "waits"])
    })
  )
})
