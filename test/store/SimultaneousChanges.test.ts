/** Changes that exclude each other: the second begins before the first has committed. */
import { expect } from "@effect/vitest"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { Domain } from "../../src/domain/accounts/SingleSignOn.ts"
import { newBudgetId } from "../../src/domain/billing/Budget.ts"
import { SingleSignOnStore } from "../../src/store/accounts/SingleSignOn.ts"
import { BudgetStore } from "../../src/store/billing/Budgets.ts"
import * as Fixtures from "../Fixtures.ts"
import { eachEngineLive, reset } from "../TestDatabase.ts"

const Live = Layer.mergeAll(SingleSignOnStore.Default, BudgetStore.Default)

/** Begins `second` when `first` has run, and commits `first` a little later. */
const overlapping = <A, B, E, F>(first: Effect.Effect<A, E>, second: Effect.Effect<B, F>) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const hasRun = yield* Deferred.make<void>()
    const uncommitted = sql.withTransaction(
      Effect.zipLeft(first, Effect.zipRight(Deferred.succeed(hasRun, undefined), Effect.sleep("100 millis")))
    )
    return yield* Effect.all([uncommitted, Effect.zipRight(Deferred.await(hasRun), second)], {
      concurrency: "unbounded"
    })
  })

eachEngineLive("Simultaneous changes", (it) => {
  it.effect("confirm a domain for one tenant, and the other one is told that it is taken", () =>
    Effect.gen(function* () {
      yield* reset
      const sql = yield* SqlClient.SqlClient
      const { confirm } = yield* SingleSignOnStore
      const one = yield* Fixtures.agent()
      const two = yield* Fixtures.agent()
      const domain = Schema.decodeSync(Domain)("acme.example")
      for (const { tenantId } of [one, two])
        yield* sql`insert into sso_domains (tenant_id, domain) values (${tenantId}, ${domain})`
      expect(yield* overlapping(confirm(one, domain, true), confirm(two, domain, true))).toEqual([
        "done",
        "taken"
      ])
    }).pipe(Effect.provide(Live))
  )

  it.effect("give a deleted agent no budget, and tell that it is missing", () =>
    Effect.gen(function* () {
      yield* reset
      const sql = yield* SqlClient.SqlClient
      const { insert } = yield* BudgetStore
      const { agentId, tenantId } = yield* Fixtures.agent()
      const id = yield* newBudgetId
      const [, outcome] = yield* overlapping(
        sql`delete from agents where tenant_id = ${tenantId} and id = ${agentId}`,
        insert({ tenantId }, id, { agentId, limitNanoUsd: 1, period: "day" })
      )
      expect(outcome).toBe("missing")
    }).pipe(Effect.provide(Live))
  )
})
