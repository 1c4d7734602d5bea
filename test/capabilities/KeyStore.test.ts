import { describe, expect } from "@effect/vitest"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as TestClock from "effect/TestClock"
import { layerScrypt } from "../../src/capabilities/Credentials/Scrypt.ts"
import { KeyStore } from "../../src/capabilities/KeyStore.ts"
import { layerSql } from "../../src/capabilities/KeyStore/Sql.ts"
import { AgentId, KeyId } from "../../src/domain/Ids.ts"
import { AgentStore } from "../../src/store/agents/Agents.ts"
import { ApiKeyStore } from "../../src/store/accounts/ApiKeys.ts"
import { Agents } from "../../src/usecases/agents/Agents.ts"
import { Keys } from "../../src/usecases/accounts/Keys.ts"
import * as Fixtures from "../Fixtures.ts"
import { layerArtifacts } from "../MemoryArtifacts.ts"
import { layerNoRevocations } from "../NoRevocations.ts"
import { eachEngine, reset } from "../TestDatabase.ts"

/** A process of its own, as far as keys are concerned. */
const process = Effect.gen(function* () {
  const cheap = layerScrypt({ log2N: 10, r: 8, p: 1 })
  const stores = Layer.mergeAll(AgentStore.Default, ApiKeyStore.Default)
  const base = layerSql.pipe(Layer.provideMerge(cheap), Layer.provideMerge(stores))
  const built = yield* Layer.build(
    Layer.mergeAll(Keys.Default, Agents.Default).pipe(
      Layer.provide([layerArtifacts, layerNoRevocations]),
      Layer.provideMerge(base)
    )
  )
  return {
    keyStore: Context.get(built, KeyStore),
    keys: Context.get(built, Keys),
    agents: Context.get(built, Agents)
  }
})

const wanted = { name: "Shop", permissions: ["chat", "trace_read"] as const }

/** Runs `check` until it holds: for what happens beside the requests. */
const eventually = <A, E, R>(effect: Effect.Effect<A, E, R>, holds: (value: A) => boolean) =>
  effect.pipe(Effect.tap(Effect.yieldNow()), Effect.repeat({ until: holds, times: 500 }))

describe("KeyStore", () => {
  eachEngine("SQL", (it) => {
    it.scoped("finds a live key with its agent, permissions, origins and plan", () =>
      Effect.gen(function* () {
        yield* reset
        const scope = yield* Fixtures.agent()
        const { keyStore, keys } = yield* process
        const { key, secret } = yield* keys.create(scope, scope.agentId, {
          ...wanted,
          allowedOrigins: ["https://shop.example", "http://localhost:3000"],
          rateLimit: { requests: 60, window: 10 }
        })
        expect(Option.getOrNull(yield* keyStore.find(secret))).toEqual({
          sourceScope: null,
          keyId: key.id,
          tenantId: scope.tenantId,
          scope: "agent",
          agentId: scope.agentId,
          permissions: ["chat", "trace_read"],
          allowedOrigins: ["https://shop.example", "http://localhost:3000"],
          publicApi: true,
          rateLimit: { requests: 60, window: 10 }
        })
        const org = yield* keys.createOrg(scope, { name: "All", scope: "org", permissions: ["*"] })
        expect(Option.getOrNull(yield* keyStore.find(org.secret))).toMatchObject({
          scope: "org",
          agentId: null
        })
      })
    )

    it.scoped("finds nothing for a secret that is not a key's, whatever it is made of", () =>
      Effect.gen(function* () {
        const { keyStore } = yield* process
        const texts = FastCheck.sample(FastCheck.string({ unit: "binary", maxLength: 300 }), 50)
        for (const text of ["", "spk_", "\u0000", "\ud800", "x".repeat(100_000), ...texts]) {
          expect(yield* keyStore.find(Redacted.make(text))).toEqual(Option.none())
        }
      })
    )

    it.scoped("stores the hash of a secret and never the secret", () =>
      Effect.gen(function* () {
        const scope = yield* Fixtures.agent()
        const { keys } = yield* process
        const { secret } = yield* keys.create(scope, scope.agentId, wanted)
        const sql = yield* SqlClient.SqlClient
        const rows = yield* sql<{ readonly row: string }>`select k::text as row from api_keys k`
        const text = Redacted.value(secret)
        expect(text).toMatch(/^spk_[A-Za-z0-9_-]{43}$/)
        expect(rows.some(({ row }) => row.includes(text.slice(13)))).toBe(false)
        expect(rows.some(({ row }) => row.includes(text.slice(0, 12)))).toBe(true)
      })
    )

    it.scoped("holds a revocation at once on this process and within a second on every other", () =>
      Effect.gen(function* () {
        const scope = yield* Fixtures.agent()
        const here = yield* process
        const there = yield* process
        const { key, secret } = yield* here.keys.create(scope, scope.agentId, wanted)
        expect(Option.isSome(yield* here.keyStore.find(secret))).toBe(true)
        expect(Option.isSome(yield* there.keyStore.find(secret))).toBe(true)
        yield* here.keys.revoke(scope, key.id)
        expect(yield* here.keyStore.find(secret)).toEqual(Option.none())
        yield* TestClock.adjust("500 millis")
        expect(yield* there.keyStore.find(secret)).toEqual(Option.none())
        yield* here.keys.revoke(scope, key.id)
        const again = yield* Effect.flip(here.keys.patch(scope, key.id, { active: true }))
        expect(again._tag).toBe("CONFLICT")
        expect(yield* here.keyStore.find(secret)).toEqual(Option.none())
      })
    )

    it.scoped("remembers what it found for half a second and never that it found nothing", () =>
      Effect.gen(function* () {
        const scope = yield* Fixtures.agent()
        const { keyStore, keys } = yield* process
        const { key, secret } = yield* keys.create(scope, scope.agentId, wanted)
        const sql = yield* SqlClient.SqlClient
        const set = (status: string) => sql`update api_keys set status = ${status} where id = ${key.id}`
        yield* keyStore.find(secret)
        yield* set("INACTIVE")
        yield* TestClock.adjust("499 millis")
        expect(Option.isSome(yield* keyStore.find(secret))).toBe(true)
        yield* TestClock.adjust("1 millis")
        expect(yield* keyStore.find(secret)).toEqual(Option.none())
        yield* set("ACTIVE")
        expect(Option.isSome(yield* keyStore.find(secret))).toBe(true)
      })
    )

    it.scoped("does not remember what was read before a revocation and arrived after it", () =>
      Effect.gen(function* () {
        const scope = yield* Fixtures.agent()
        const { keyStore, keys } = yield* process
        for (let round = 0; round < 20; round++) {
          const { key, secret } = yield* keys.create(scope, scope.agentId, wanted)
          const looking = Array.from({ length: 5 }, () => keyStore.find(secret))
          yield* Effect.all([...looking, keys.revoke(scope, key.id), ...looking], {
            concurrency: "unbounded"
          })
          expect(yield* keyStore.find(secret)).toEqual(Option.none())
        }
      })
    )

    it.scoped("takes inactive, expired and deleted agents' keys for no keys, and patches at once", () =>
      Effect.gen(function* () {
        const scope = yield* Fixtures.agent()
        const { keyStore, keys, agents } = yield* process
        const { key, secret } = yield* keys.create(scope, scope.agentId, wanted)
        const found = Effect.map(keyStore.find(secret), Option.isSome)
        expect(yield* found).toBe(true)
        yield* keys.patch(scope, key.id, { active: false })
        expect(yield* found).toBe(false)
        yield* keys.patch(scope, key.id, { active: true, allowedOrigins: ["https://a.example"] })
        expect(Option.getOrNull(yield* keyStore.find(secret))?.allowedOrigins).toEqual(["https://a.example"])
        const sql = yield* SqlClient.SqlClient
        yield* sql`update api_keys set expires_at = now() - interval '1 second' where id = ${key.id}`
        yield* keyStore.invalidate({ keyId: key.id })
        expect(yield* found).toBe(false)
        const { rows } = yield* keys.list(scope, scope.agentId, { limit: 10 })
        expect(rows.map(({ status }) => status)).toContain("EXPIRED")
        yield* keys.patch(scope, key.id, { expiresAt: null })
        expect(yield* found).toBe(true)
        yield* agents.remove(scope, scope.agentId)
        expect(yield* found).toBe(false)
      })
    )

    it.scoped("remembers a key that is about to expire no longer than it lives", () =>
      Effect.gen(function* () {
        const scope = yield* Fixtures.agent()
        const { keyStore, keys } = yield* process
        const { key, secret } = yield* keys.create(scope, scope.agentId, wanted)
        const sql = yield* SqlClient.SqlClient
        yield* sql`update api_keys set expires_at = now() + interval '300 milliseconds' where id = ${key.id}`
        if (Option.isNone(yield* keyStore.find(secret))) return
        yield* sql`update api_keys set status = 'REVOKED' where id = ${key.id}`
        yield* TestClock.adjust("300 millis")
        expect(yield* keyStore.find(secret)).toEqual(Option.none())
      })
    )

    it.scoped("knows a plan without the public API at once when it is told so", () =>
      Effect.gen(function* () {
        const scope = yield* Fixtures.agent()
        const { keyStore, keys } = yield* process
        const { secret } = yield* keys.create(scope, scope.agentId, wanted)
        yield* keyStore.find(secret)
        const sql = yield* SqlClient.SqlClient
        yield* sql`update subscriptions set public_api = false where tenant_id = ${scope.tenantId}`
        yield* keyStore.invalidate({ tenantId: scope.tenantId })
        expect(Option.getOrNull(yield* keyStore.find(secret))?.publicApi).toBe(false)
      })
    )

    it.scoped("forgets only the keys that a change touches", () =>
      Effect.gen(function* () {
        const scope = yield* Fixtures.agent()
        const { keyStore, keys } = yield* process
        const { key, secret } = yield* keys.create(scope, scope.agentId, wanted)
        const sql = yield* SqlClient.SqlClient
        yield* keyStore.find(secret)
        yield* sql`update api_keys set status = 'INACTIVE' where id = ${key.id}`
        yield* keyStore.invalidate({ keyId: KeyId.make("key_other") })
        yield* keyStore.invalidate({ agentId: AgentId.make("agt_other") })
        expect(Option.isSome(yield* keyStore.find(secret))).toBe(true)
        yield* keyStore.invalidate({ agentId: scope.agentId })
        expect(yield* keyStore.find(secret)).toEqual(Option.none())
      })
    )

    it.scoped("notes when a key was last used, at most once a minute", () =>
      Effect.gen(function* () {
        const scope = yield* Fixtures.agent()
        const { keyStore, keys } = yield* process
        const { key, secret } = yield* keys.create(scope, scope.agentId, wanted)
        const sql = yield* SqlClient.SqlClient
        const lastUsed = Effect.map(
          sql<{
            readonly at: string | null
          }>`select last_used_at::text as at from api_keys where id = ${key.id}`,
          (rows) => rows[0]?.at ?? null
        )
        expect(yield* lastUsed).toBe(null)
        yield* keyStore.find(secret)
        const first = yield* eventually(lastUsed, (at) => at !== null)
        yield* keyStore.invalidate({ keyId: key.id })
        yield* keyStore.find(secret)
        yield* Effect.repeatN(lastUsed, 20)
        expect(yield* lastUsed).toBe(first)
        yield* sql`update api_keys set last_used_at = now() - interval '61 seconds' where id = ${key.id}`
        const old = yield* lastUsed
        yield* keyStore.invalidate({ keyId: key.id })
        yield* keyStore.find(secret)
        expect(yield* eventually(lastUsed, (at) => at !== old)).not.toBe(old)
      })
    )
  })
})
