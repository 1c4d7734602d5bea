import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { eachEngine, reset } from "../TestDatabase.ts"

eachEngine("Database", (it) => {
  it.effect("reset empties every table", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql`insert into tenants (id, name) values ('ten_1', 'One')`
      yield* sql`insert into subscriptions (tenant_id, plan, public_api, turns_limit, ingestion_jobs_limit, sources_limit, overage_enabled)
        values ('ten_1', 'x', true, 1, 1, 1, true)`
      yield* reset
      expect(yield* sql`select id from tenants`).toEqual([])
    })
  )
})
