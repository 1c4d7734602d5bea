import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { expireLeases } from "../../../src/capabilities/JobQueue/Table.ts"
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
