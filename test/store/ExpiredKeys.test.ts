/** Removal of keys of repeated requests, sessions, counts and periods of budgets that nothing needs any more. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { removeExpired } from "../../src/capabilities/RateLimiter/Sql.ts"
import { UserId } from "../../src/domain/Ids.ts"
import { SessionStore } from "../../src/store/accounts/Sessions.ts"
import { BudgetStore } from "../../src/store/billing/Budgets.ts"
import { TurnClaimStore } from "../../src/store/chat/TurnClaims.ts"
import { IdempotencyKeyStore } from "../../src/store/IdempotencyKeys.ts"
import * as Fixtures from "../Fixtures.ts"
import { eachEngineLive, reset } from "../TestDatabase.ts"

const layer = Layer.mergeAll(
  BudgetStore.Default,
  TurnClaimStore.Default,
  IdempotencyKeyStore.Default,
  SessionStore.Default
)

const onFreshData = <A, E, R>(test: Effect.Effect<A, E, R>) =>
  Effect.zipRight(reset, Effect.provide(test, layer))

eachEngineLive("Expired rows", (it) => {
  it.effect("of idempotency keys are removed in batches, and those of the last 24 hours stay", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { agentId, tenantId } = yield* Fixtures.agent()
      const { prune } = yield* IdempotencyKeyStore
      yield* sql`
        insert into idempotency_keys (tenant_id, agent_id, key_id, idempotency_key, response, created_at)
        select ${tenantId}, ${agentId}, 'key_1', n::text, 'null',
          now() - case when n <= 1500 then interval '24 hours 1 minute' else interval '23 hours 59 minutes' end
        from generate_series(1, 1510) n`
      const left = Effect.map(sql`select from idempotency_keys`, (rows) => rows.length)
      expect([yield* prune, yield* left]).toEqual([true, 510])
      expect([yield* prune, yield* left]).toEqual([false, 10])
    }).pipe(onFreshData)
  )

  it.effect("of turns' idempotency keys are removed in batches, and those of the last 24 hours stay", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { agentId, tenantId } = yield* Fixtures.agent()
      const { prune } = yield* TurnClaimStore
      yield* sql`
        insert into turn_claims (tenant_id, agent_id, key_id, idempotency_key, request_hash, run_id, created_at)
        select ${tenantId}, ${agentId}, 'key_1', n::text, '', 'run_1',
          now() - case when n <= 1500 then interval '24 hours 1 minute' else interval '23 hours 59 minutes' end
        from generate_series(1, 1510) n`
      const left = Effect.map(sql`select from turn_claims`, (rows) => rows.length)
      expect([yield* prune, yield* left]).toEqual([true, 510])
      expect([yield* prune, yield* left]).toEqual([false, 10])
    }).pipe(onFreshData)
  )

  it.effect("of sessions are removed in batches, one with each sign-in, and open sessions stay", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { tenantId } = yield* Fixtures.agent()
      const { insert } = yield* SessionStore
      const userId = UserId.make("mbr_1")
      yield* sql`
        insert into users (tenant_id, id, email, role) values (${tenantId}, ${userId}, 'ada@example.com', 'owner')`
      yield* sql`
        insert into user_sessions (tenant_id, token_hash, user_id, expires_at)
        select ${tenantId}, sha256(n::text::bytea), ${userId},
          now() + case when n <= 150 then interval '-1 minute' else interval '1 minute' end
        from generate_series(1, 160) n`
      const signIn = (byte: number) =>
        insert({
          fingerprint: Uint8Array.of(byte),
          tenantId,
          userId,
          method: "password",
          passwordHash: null,
          address: null,
          device: null,
          lifetime: Duration.hours(1)
        })
      const left = Effect.map(sql`select from user_sessions`, (rows) => rows.length)
      expect([yield* signIn(1), yield* left]).toEqual([true, 61])
      expect([yield* signIn(2), yield* left]).toEqual([true, 12])
    }).pipe(onFreshData)
  )

  it.effect("of counted requests are removed in batches, and those that still count stay", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql`
        insert into rate_counters (name, part, counts, granted, expires_at)
        select n::text, 1, '{1}', true,
          now() + case when n <= 1500 then interval '-1 minute' else interval '1 minute' end
        from generate_series(1, 1510) n`
      const prune = removeExpired(sql)
      const left = Effect.map(sql`select from rate_counters`, (rows) => rows.length)
      expect([yield* prune, yield* left]).toEqual([true, 510])
      expect([yield* prune, yield* left]).toEqual([false, 10])
    }).pipe(onFreshData)
  )

  it.effect("of a budget are removed, but for the two newest periods and those that a turn holds", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { tenantId } = yield* Fixtures.agent()
      const { prune } = yield* BudgetStore
      yield* sql`
        insert into budgets (tenant_id, id, period, limit_nano)
        values (${tenantId}, 'bgt_day', 'day', 100), (${tenantId}, 'bgt_month', 'month', 100)`
      yield* sql`
        insert into budget_periods (tenant_id, budget_id, period_start)
        select ${tenantId}, 'bgt_day', timestamptz '2020-01-01' + n * interval '1 day' from generate_series(0, 1499) n
        union all select ${tenantId}, 'bgt_month', timestamptz '2020-01-01'`
      yield* sql`
        insert into budget_holds (tenant_id, run_id, budget_id, period_start, nano, instance_id, ends_by)
        values (${tenantId}, 'run_1', 'bgt_day', timestamptz '2020-01-01', 1, 'i', now())`
      const left = Effect.map(
        sql<{ readonly budget: string; readonly place: number }>`
          select budget_id as budget, (period_start::date - date '2020-01-01') as place
          from budget_periods order by 1, 2`,
        (rows) => rows.map(({ budget, place }) => [budget, place])
      )
      expect([yield* prune, (yield* left).length]).toEqual([true, 501])
      expect(yield* prune).toBe(false)
      expect(yield* left).toEqual([
        ["bgt_day", 0],
        ["bgt_day", 1498],
        ["bgt_day", 1499],
        ["bgt_month", 0]
      ])
    }).pipe(onFreshData)
  )
})
