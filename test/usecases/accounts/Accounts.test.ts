import { describe, expect, it as unit } from "@effect/vitest"
import * as SqlClient from "@effect/sql/SqlClient"
import * as DateTime from "effect/DateTime"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { Credentials } from "../../../src/capabilities/Credentials.ts"
import { layerScrypt } from "../../../src/capabilities/Credentials/Scrypt.ts"
import { layerSql } from "../../../src/capabilities/KeyStore/Sql.ts"
import { Email } from "../../../src/domain/accounts/Account.ts"
import { newId, TenantId } from "../../../src/domain/Ids.ts"
import { AgentStore } from "../../../src/store/agents/Agents.ts"
import { ApiKeyStore } from "../../../src/store/accounts/ApiKeys.ts"
import { SessionStore } from "../../../src/store/accounts/Sessions.ts"
import { SubscriptionStore } from "../../../src/store/billing/Subscriptions.ts"
import { TenantStore } from "../../../src/store/accounts/Tenants.ts"
import { UserStore } from "../../../src/store/accounts/Users.ts"
import { Accounts } from "../../../src/usecases/accounts/Accounts.ts"
import { Agents } from "../../../src/usecases/agents/Agents.ts"
import { Keys } from "../../../src/usecases/accounts/Keys.ts"
import { Subscriptions } from "../../../src/usecases/billing/Subscriptions.ts"
import { layerArtifacts } from "../../MemoryArtifacts.ts"
import { layerNoRevocations } from "../../NoRevocations.ts"
import { eachEngine, reset } from "../../TestDatabase.ts"

const scrypt = layerScrypt({ log2N: 10, r: 8, p: 1 })
const useCases = (credentials: typeof scrypt) =>
  Layer.mergeAll(Accounts.Default, Agents.Default, Keys.Default, Subscriptions.Default).pipe(
    Layer.provide(
      Layer.mergeAll(
        AgentStore.Default,
        ApiKeyStore.Default,
        SessionStore.Default,
        SubscriptionStore.Default,
        TenantStore.Default,
        UserStore.Default
      )
    ),
    Layer.provide(layerNoRevocations),
    Layer.provideMerge(layerArtifacts),
    Layer.provideMerge(layerSql),
    Layer.provideMerge(credentials)
  )
const UseCases = useCases(scrypt)

/** Completes `verified` when a password has been verified. */
const watched = (verified: Deferred.Deferred<void>) =>
  Layer.effect(
    Credentials,
    Effect.map(Credentials, (own) => ({
      ...own,
      verifyPassword: (...given: Parameters<typeof own.verifyPassword>) =>
        Effect.ensuring(own.verifyPassword(...given), Deferred.succeed(verified, undefined))
    }))
  ).pipe(Layer.provide(scrypt))

const ada = { email: Email.make("ada@example.com"), password: Redacted.make("correct horse") }
const wrong = { ...ada, password: Redacted.make("battery staple") }
const home = "198.51.100.7"

const tenant = Effect.flatMap(Accounts, (accounts) => accounts.createTenant({ name: "Shop", owner: ada }))

/** As if `span` had gone by: the times of sign-ins are the database's. */
const pass = (span: string) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql`
      with failures as (update login_failures set at = at - ${span}::interval)
      update user_sessions set expires_at = expires_at - ${span}::interval`
  )

const failTimes = (times: number, address: string) =>
  Effect.flatMap(Accounts, (accounts) =>
    Effect.forEach(Array.from({ length: times }), () =>
      Effect.map(Effect.flip(accounts.signIn(wrong, address)), (failure) => failure._tag)
    )
  )

describe("Accounts", () => {
  eachEngine("in SQL", (it) => {
    it.effect("create a tenant on plan self-hosted with its owner, who can sign in and out", () =>
      Effect.gen(function* () {
        yield* reset
        const accounts = yield* Accounts
        const made = yield* tenant
        expect(made.tenant.id).toMatch(/^ten_/)
        expect(made.owner).toMatchObject({
          email: "ada@example.com",
          role: "owner",
          tenantId: made.tenant.id
        })
        const sql = yield* SqlClient.SqlClient
        const [plan] = yield* sql`
          select plan, status, public_api, turns_limit::int as turns, ingestion_jobs_limit::int as jobs,
            sources_limit::int as sources, overage_enabled, period_start from subscriptions`
        expect(plan).toEqual({
          plan: "self-hosted",
          status: "active",
          public_api: true,
          turns: 1_000_000,
          jobs: 1_000_000,
          sources: 1_000_000,
          overage_enabled: false,
          period_start: null
        })
        const { user, token } = yield* accounts.signIn(ada, home)
        expect(user).toEqual(made.owner)
        expect(yield* accounts.authenticate(token)).toEqual({
          userId: user.id,
          tenantId: made.tenant.id,
          email: "ada@example.com",
          role: "owner",
          session: expect.stringMatching(/^[\w-]{43,44}=?$/u)
        })
        yield* accounts.signOut(token)
        expect((yield* Effect.flip(accounts.authenticate(token)))._tag).toBe("UNAUTHORIZED")
        yield* accounts.signOut(token)
      }).pipe(Effect.provide(UseCases))
    )

    it.effect("refuse a second user with the same e-mail address, and leave no tenant behind", () =>
      Effect.gen(function* () {
        yield* reset
        const accounts = yield* Accounts
        const both = yield* Effect.all([Effect.either(tenant), Effect.either(tenant)], { concurrency: 2 })
        const failures = both.flatMap(Either.match({ onLeft: ({ _tag }) => [_tag], onRight: () => [] }))
        expect(failures).toEqual(["CONFLICT"])
        expect((yield* accounts.listTenants({ limit: 10 })).rows).toHaveLength(1)
      }).pipe(Effect.provide(UseCases))
    )

    it.effect("list tenants page by page, newest first, each once", () =>
      Effect.gen(function* () {
        yield* reset
        const accounts = yield* Accounts
        const names = ["a", "b", "c", "d", "e"]
        for (const name of names) {
          yield* accounts.createTenant({ name, owner: { ...ada, email: Email.make(`${name}@example.com`) } })
        }
        const seen: Array<string> = []
        let after: string | undefined
        do {
          const page = yield* accounts.listTenants({ limit: 2, after })
          seen.push(...page.rows.map(({ name }) => name))
          after = page.next ?? undefined
        } while (after !== undefined)
        expect(seen.toSorted()).toEqual(names)
      }).pipe(Effect.provide(UseCases))
    )

    it.effect("store neither password nor session token", () =>
      Effect.gen(function* () {
        yield* reset
        yield* tenant
        const accounts = yield* Accounts
        const { token } = yield* accounts.signIn(ada, home)
        const sql = yield* SqlClient.SqlClient
        const rows = yield* sql<{ readonly row: string }>`
          select u::text as row from users u union all select s::text from user_sessions s`
        expect(rows).toHaveLength(2)
        const text = rows.map(({ row }) => row).join()
        expect(text).toContain("$scrypt$ln=")
        expect(text.includes("correct horse") || text.includes(Redacted.value(token))).toBe(false)
      }).pipe(Effect.provide(UseCases))
    )

    it.effect("end a session after thirty days and when its user is removed", () =>
      Effect.gen(function* () {
        yield* reset
        yield* tenant
        const accounts = yield* Accounts
        const { token } = yield* accounts.signIn(ada, home)
        yield* pass("29 days 23:59")
        expect((yield* accounts.authenticate(token)).email).toBe(ada.email)
        yield* pass("2 minutes")
        expect((yield* Effect.flip(accounts.authenticate(token)))._tag).toBe("UNAUTHORIZED")
        const second = yield* accounts.signIn(ada, home)
        const sql = yield* SqlClient.SqlClient
        expect(yield* sql`select 1 from user_sessions`).toHaveLength(1)
        yield* sql`delete from users`
        expect((yield* Effect.flip(accounts.authenticate(second.token)))._tag).toBe("UNAUTHORIZED")
      }).pipe(Effect.provide(UseCases))
    )

    it.effect(
      "answer 429 after ten failures of an account and address within 15 minutes, to the right password too",
      () =>
        Effect.gen(function* () {
          yield* reset
          yield* tenant
          const accounts = yield* Accounts
          expect(yield* failTimes(9, home)).toEqual(Array(9).fill("UNAUTHORIZED"))
          yield* accounts.signIn(ada, home)
          expect(yield* failTimes(3, home)).toEqual(["UNAUTHORIZED", "RATE_LIMITED", "RATE_LIMITED"])
          const limited = yield* Effect.flip(accounts.signIn(ada, home))
          if (limited._tag !== "RATE_LIMITED") return expect.unreachable()
          const retryAfterSeconds = limited.details?.["retryAfterSeconds"]
          // Less by what the attempts have taken.
          expect(retryAfterSeconds).toBeGreaterThan(840)
          expect(retryAfterSeconds).toBeLessThanOrEqual(900)
          yield* accounts.signIn(ada, "203.0.113.9")
          yield* pass("14 minutes")
          expect((yield* Effect.flip(accounts.signIn(ada, home)))._tag).toBe("RATE_LIMITED")
          yield* pass("1 minute 1 second")
          yield* accounts.signIn(ada, home)
        }).pipe(Effect.provide(UseCases))
    )

    it.effect("count a failure whose client has disconnected", () =>
      Effect.gen(function* () {
        yield* reset
        yield* tenant.pipe(Effect.provide(UseCases))
        const sql = yield* SqlClient.SqlClient
        const verified = yield* Deferred.make<void>()
        yield* Effect.gen(function* () {
          const accounts = yield* Accounts
          const guess = yield* Effect.fork(accounts.signIn(wrong, home))
          yield* Deferred.await(verified)
          yield* Fiber.interrupt(guess)
        }).pipe(Effect.provide(Layer.fresh(useCases(watched(verified)))))
        expect(yield* sql`select 1 from login_failures`).toHaveLength(1)
      })
    )

    it.effect("throttle concurrent guesses: at most ten get the answer that they are wrong", () =>
      Effect.gen(function* () {
        yield* reset
        yield* tenant
        const accounts = yield* Accounts
        const guesses = Array.from({ length: 30 }, () => Effect.flip(accounts.signIn(wrong, home)))
        const failures = yield* Effect.all(guesses, { concurrency: "unbounded" })
        expect(failures.filter(({ _tag }) => _tag === "UNAUTHORIZED")).toHaveLength(10)
        expect(failures.filter(({ _tag }) => _tag === "RATE_LIMITED")).toHaveLength(20)
      }).pipe(Effect.provide(UseCases))
    )

    it.effect("treat an unknown e-mail address like a wrong password, throttling included", () =>
      Effect.gen(function* () {
        yield* reset
        const failures = yield* failTimes(11, home)
        expect(failures).toEqual([...Array(10).fill("UNAUTHORIZED"), "RATE_LIMITED"])
      }).pipe(Effect.provide(UseCases))
    )

    it.effect("set up an agent from defaults, change what is sent and clear what is null", () =>
      Effect.gen(function* () {
        yield* reset
        const agents = yield* Agents
        const { tenant: scope } = yield* tenant
        const of = { tenantId: scope.id }
        const made = yield* agents.create(of, { name: "Helper" })
        expect(made).toMatchObject({
          name: "Helper",
          instructions: "",
          model: null,
          greeting: null,
          retrieval: { topK: 6, minScore: null },
          grounding: { mode: "strict", unsupported: "annotate", contextTokens: 6_000, maxSearches: 0 }
        })
        const changed = yield* agents.patch(of, made.id, {
          instructions: "Be brief.",
          model: "small",
          greeting: "Hi",
          retrieval: { minScore: 0.4 }
        })
        expect(changed).toMatchObject({
          name: "Helper",
          instructions: "Be brief.",
          model: "small",
          greeting: "Hi",
          retrieval: { topK: 6, minScore: 0.4 }
        })
        const partly = yield* agents.patch(of, made.id, { retrieval: { topK: 3 }, greeting: null })
        expect(partly).toMatchObject({
          greeting: null,
          model: "small",
          retrieval: { topK: 3, minScore: 0.4 }
        })
        const cleared = yield* agents.patch(of, made.id, { instructions: null, model: null, retrieval: null })
        expect(cleared).toMatchObject({
          instructions: "",
          model: null,
          retrieval: { topK: 6, minScore: null }
        })
        expect(yield* agents.patch(of, made.id, {})).toEqual(cleared)
        const grounded = yield* agents.patch(of, made.id, {
          grounding: { mode: "general", unsupported: "withhold" }
        })
        expect(grounded.grounding).toEqual({ ...cleared.grounding, mode: "general", unsupported: "withhold" })
        expect(
          (yield* agents.patch(of, made.id, { grounding: { contextTokens: 900, maxSearches: 3 } })).grounding
        ).toEqual({
          mode: "general",
          unsupported: "withhold",
          contextTokens: 900,
          maxSearches: 3
        })
        expect((yield* agents.patch(of, made.id, { grounding: null })).grounding).toEqual(cleared.grounding)
        yield* agents.remove(of, made.id)
        expect((yield* Effect.flip(agents.get(of, made.id)))._tag).toBe("NOT_FOUND")
        expect((yield* Effect.flip(agents.remove(of, made.id)))._tag).toBe("NOT_FOUND")
      }).pipe(Effect.provide(UseCases))
    )

    it.effect("keep agents and keys of one tenant from every other", () =>
      Effect.gen(function* () {
        yield* reset
        const accounts = yield* Accounts
        const agents = yield* Agents
        const keys = yield* Keys
        const one = { tenantId: (yield* tenant).tenant.id }
        const eve = { ...ada, email: Email.make("eve@example.com") }
        const other = { tenantId: (yield* accounts.createTenant({ name: "Eve", owner: eve })).tenant.id }
        const agent = yield* agents.create(one, { name: "Helper" })
        const { key } = yield* keys.create(one, agent.id, { name: "k", permissions: ["chat"] })
        const tries: ReadonlyArray<Effect.Effect<unknown, unknown>> = [
          agents.get(other, agent.id),
          agents.patch(other, agent.id, { name: "Stolen" }),
          agents.remove(other, agent.id),
          keys.create(other, agent.id, { name: "k", permissions: ["chat"] }),
          keys.list(other, agent.id, { limit: 10 }),
          keys.patch(other, key.id, { active: false }),
          keys.revoke(other, key.id)
        ]
        for (const attempt of tries) expect(yield* Effect.flip(attempt)).toMatchObject({ _tag: "NOT_FOUND" })
        expect((yield* agents.list(other, { limit: 10 })).rows).toEqual([])
        expect((yield* agents.get(one, agent.id)).name).toBe("Helper")
        const { rows } = yield* keys.list(one, agent.id, { limit: 10 })
        expect(rows.map(({ id, status }) => [id, status])).toEqual([[key.id, "ACTIVE"]])
      }).pipe(Effect.provide(UseCases))
    )

    it.effect("refuse an expiry that has passed", () =>
      Effect.gen(function* () {
        yield* reset
        const scope = { tenantId: (yield* tenant).tenant.id }
        const agent = yield* Effect.flatMap(Agents, (agents) => agents.create(scope, { name: "Helper" }))
        const keys = yield* Keys
        const now = yield* DateTime.now
        const late = { name: "k", permissions: ["chat"], expiresAt: now } as const
        const refused = yield* Effect.flip(keys.create(scope, agent.id, late))
        expect(refused).toMatchObject({
          _tag: "VALIDATION_ERROR",
          details: { issues: [{ path: ["expiresAt"], message: "Expected a time in the future" }] }
        })
        const { key } = yield* keys.create(scope, agent.id, {
          ...late,
          expiresAt: DateTime.unsafeMake("9999-12-31")
        })
        expect((yield* Effect.flip(keys.patch(scope, key.id, { expiresAt: now })))._tag).toBe(
          "VALIDATION_ERROR"
        )
      }).pipe(Effect.provide(UseCases))
    )

    it.effect("replace a tenant's subscription, and none of an unknown tenant", () =>
      Effect.gen(function* () {
        yield* reset
        const subscriptions = yield* Subscriptions
        const scope = { tenantId: (yield* tenant).tenant.id }
        const wanted = {
          plan: "pro",
          period: { start: DateTime.unsafeMake("2030-01-01"), end: DateTime.unsafeMake("2030-02-01") },
          entitlements: {
            publicApi: false,
            turns: 0,
            ingestionJobs: 1,
            sources: 1_000_000_000,
            overageEnabled: true
          }
        }
        expect(yield* subscriptions.put(scope, wanted)).toEqual(
          expect.objectContaining({ ...wanted, status: "active" })
        )
        const { plan, entitlements } = wanted
        expect((yield* subscriptions.put(scope, { plan, entitlements })).period).toBe(null)
        const nobody = { tenantId: TenantId.make(yield* newId.tenant) }
        expect((yield* Effect.flip(subscriptions.put(nobody, wanted)))._tag).toBe("NOT_FOUND")
      }).pipe(Effect.provide(UseCases))
    )
  })
})

describe("Passwords", () => {
  unit.effect("are hashed with a unique salt, and verified with the cost that they were hashed with", () =>
    Effect.gen(function* () {
      const credentials = yield* Credentials
      const [one, two] = [
        yield* credentials.hashPassword(ada.password, home),
        yield* credentials.hashPassword(ada.password, home)
      ]
      expect(one).not.toBe(two)
      expect(one).toMatch(/^\$scrypt\$ln=15,r=8,p=3\$/)
      expect(yield* credentials.verifyPassword(ada.password, one, home)).toBe(true)
      expect(yield* credentials.verifyPassword(wrong.password, one, home)).toBe(false)
      expect(yield* credentials.verifyPassword(ada.password, null, home)).toBe(false)
      expect(yield* credentials.verifyPassword(ada.password, "$scrypt$ln=15,r=8,p=3$$", home)).toBe(false)
      const cheap = yield* Effect.flatMap(Credentials, (other) =>
        other.hashPassword(ada.password, home)
      ).pipe(Effect.provide(layerScrypt({ log2N: 10, r: 8, p: 1 })))
      expect(yield* credentials.verifyPassword(ada.password, cheap, home)).toBe(true)
      // One password, composed and decomposed.
      const accented = yield* credentials.hashPassword(Redacted.make("caf\u00e9 au lait"), home)
      expect(yield* credentials.verifyPassword(Redacted.make("cafe\u0301 au lait"), accented, home)).toBe(
        true
      )
    }).pipe(Effect.provide(layerScrypt()))
  )
})
