/** Times that were written while the database's clock was far ahead, after that clock was set back. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { ProviderBackoff } from "../../src/capabilities/ProviderBackoff.ts"
import { layerSql as pauses } from "../../src/capabilities/ProviderBackoff/Sql.ts"
import { RateLimiter } from "../../src/capabilities/RateLimiter.ts"
import { layerSql as rates } from "../../src/capabilities/RateLimiter/Sql.ts"
import { Email } from "../../src/domain/accounts/Account.ts"
import { WebhookId } from "../../src/domain/events/Webhook.ts"
import { RetentionStore } from "../../src/store/accounts/Retention.ts"
import { SessionStore } from "../../src/store/accounts/Sessions.ts"
import { StorageStore } from "../../src/store/billing/Storage.ts"
import { ReportedGapStore } from "../../src/store/conversations/ReportedGaps.ts"
import { WebhookDeliveryStore } from "../../src/store/events/WebhookDeliveries.ts"
import * as Fixtures from "../Fixtures.ts"
import { eachEngineLive, reset } from "../TestDatabase.ts"

const layer = Layer.mergeAll(
  RetentionStore.Default,
  SessionStore.Default,
  StorageStore.Default,
  ReportedGapStore.Default,
  WebhookDeliveryStore.Default,
  pauses,
  rates
)

const onFreshData = <A, E, R>(test: Effect.Effect<A, E, R>) =>
  Effect.zipRight(reset, Effect.scoped(Effect.provide(test, Layer.fresh(layer))))

eachEngineLive("After the clock was set back", (it) => {
  it.effect("data past its retention is looked for, although the next round was due much later", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { tenantId } = yield* Fixtures.agent()
      const store = yield* RetentionStore
      yield* sql`insert into tenant_retention (tenant_id, due_at) values (${tenantId}, now() + interval '59 minutes')`
      expect(Option.isNone(yield* store.claim)).toBe(true)
      yield* sql`update tenant_retention set due_at = now() + interval '30 days'`
      expect(Option.isSome(yield* store.claim)).toBe(true)
      expect(Option.isNone(yield* store.claim)).toBe(true)
    }).pipe(onFreshData)
  )

  it.effect("the data of a tenant is counted, although the next count was due much later", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { tenantId } = yield* Fixtures.agent()
      const store = yield* StorageStore
      yield* sql`insert into tenant_storage (tenant_id, due_at) values (${tenantId}, now() + interval '23 hours')`
      expect(Option.isNone(yield* store.claim)).toBe(true)
      yield* sql`update tenant_storage set due_at = now() + interval '30 days'`
      expect(Option.isSome(yield* store.claim)).toBe(true)
      expect(Option.isNone(yield* store.claim)).toBe(true)
    }).pipe(onFreshData)
  )

  it.effect("questions without an answer are searched, although the next search was due much later", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { tenantId } = yield* Fixtures.agent()
      const store = yield* ReportedGapStore
      yield* sql`
        insert into webhook_endpoints (tenant_id, id, url, events, payload, secret)
        values (${tenantId}, 'whk_1', 'https://receiver.example/', '{gap.found}', 'thin', 's')`
      yield* sql`insert into gap_searches (tenant_id, due_at) values (${tenantId}, now() + interval '59 minutes')`
      expect(Option.isNone(yield* store.claim)).toBe(true)
      yield* sql`update gap_searches set due_at = now() + interval '30 days'`
      expect(Option.isSome(yield* store.claim)).toBe(true)
      expect(Option.isNone(yield* store.claim)).toBe(true)
    }).pipe(onFreshData)
  )

  it.effect("failed sign-ins of the future do not lock an account", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const attempt = { email: Email.make("ada@example.com"), address: "203.0.113.7" }
      const wait = Effect.flatMap(SessionStore, (store) => store.wait(attempt, Duration.minutes(15), 2))
      yield* sql`
        insert into login_failures (email, address, at)
        select ${attempt.email}, ${attempt.address}, now() from generate_series(1, 2)`
      expect(Option.isSome(yield* wait)).toBe(true)
      yield* sql`update login_failures set at = now() + interval '30 days'`
      expect(Option.isNone(yield* wait)).toBe(true)
    }).pipe(onFreshData)
  )

  it.effect("a webhook that kept failing is called, although its pause ended much later", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { tenantId } = yield* Fixtures.agent()
      const endpointId = WebhookId.make("whk_1")
      const take = Effect.flatMap(WebhookDeliveryStore, (store) =>
        store.take({ tenantId, eventId: "evt_1", endpointId })
      ).pipe(Effect.map((found) => Option.getOrNull(found)?.pausedMs ?? null))
      yield* sql`
        insert into webhook_endpoints (tenant_id, id, url, events, payload, secret, failures, failing_since, retry_at)
        values (${tenantId}, ${endpointId}, 'https://receiver.example/', '{source.ready}', 'thin', 's', 5, now(),
          now() + interval '59 minutes')`
      yield* sql`
        insert into webhook_deliveries (tenant_id, event_id, endpoint_id, type, ids)
        values (${tenantId}, 'evt_1', ${endpointId}, 'source.ready', '{}')`
      expect(yield* take).toBeGreaterThan(0)
      yield* sql`update webhook_endpoints set retry_at = now() + interval '30 days'`
      expect(yield* take).toBe(null)
    }).pipe(onFreshData)
  )

  it.effect("a provider is called, although its pause ended much later, and may ask for another pause", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const backoff = yield* ProviderBackoff
      const left = Effect.map(backoff.left("p"), Duration.toMinutes)
      yield* backoff.begin("p", Duration.minutes(59))
      expect(yield* left).toBeGreaterThan(58)
      yield* sql`update provider_pauses set until = now() + interval '30 days'`
      expect(yield* left).toBe(0)
      yield* backoff.begin("p", Duration.minutes(10))
      expect(yield* left).toBeGreaterThan(9)
      expect(yield* left).toBeLessThanOrEqual(10)
    }).pipe(onFreshData)
  )

  it.effect("requests of the future do not use up a rate limit", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { take } = yield* RateLimiter
      const limit = { requests: 2, window: 3_600 }
      const granted = Effect.map(take("key", limit), (result) => result.granted)
      expect([yield* granted, yield* granted, yield* granted]).toEqual([true, true, false])
      yield* sql`update rate_counters set part = part + 60`
      expect(yield* granted).toBe(false)
      yield* sql`update rate_counters set part = part + 10000`
      expect([yield* granted, yield* granted, yield* granted]).toEqual([true, true, false])
      expect((yield* take("key", limit)).reset).toBeLessThanOrEqual(3_660_000)
    }).pipe(onFreshData)
  )
})
