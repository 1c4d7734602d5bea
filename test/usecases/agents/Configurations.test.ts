import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FastCheck from "effect/FastCheck"
import * as Fiber from "effect/Fiber"
import type { Configuration } from "../../../src/domain/agents/Configuration.ts"
import type { TenantId } from "../../../src/domain/Ids.ts"
import { AgentStore } from "../../../src/store/agents/Agents.ts"
import { AgentVersionStore } from "../../../src/store/agents/AgentVersions.ts"
import { Agents } from "../../../src/usecases/agents/Agents.ts"
import { Configurations } from "../../../src/usecases/agents/Configurations.ts"
import { eachEngineLive } from "../../TestDatabase.ts"
import { decode, empty, live, revocations } from "./ConfigurationWorld.ts"

const name = FastCheck.stringMatching(/^[A-Za-zäß][\w '"-]{0,20}[\wé]$/)
const some = <A>(values: FastCheck.Arbitrary<A>, usual: A) => values.filter((value) => value !== usual)

const agent = FastCheck.record(
  {
    instructions: FastCheck.stringMatching(/^[ -~]{1,80}$/),
    model: FastCheck.constantFrom("small", "large"),
    greeting: FastCheck.constantFrom("Hello", "Hi\nthere"),
    retrieval: FastCheck.record(
      {
        topK: some(FastCheck.integer({ min: 1, max: 20 }), 6),
        minScore: FastCheck.constantFrom(0, 0.25, 1)
      },
      { requiredKeys: [] }
    ).filter((given) => Object.keys(given).length > 0),
    grounding: FastCheck.record(
      {
        mode: FastCheck.constant("general" as const),
        unsupported: FastCheck.constantFrom("withhold" as const, "handoff" as const),
        contextTokens: some(FastCheck.integer({ min: 500, max: 32_000 }), 6_000),
        maxSearches: FastCheck.integer({ min: 1, max: 8 })
      },
      { requiredKeys: [] }
    ).filter((given) => Object.keys(given).length > 0),
    style: FastCheck.record(
      {
        length: FastCheck.constantFrom("short" as const, "detailed" as const),
        tone: FastCheck.constantFrom("friendly" as const, "formal" as const, "casual" as const)
      },
      { requiredKeys: [] }
    ).filter((given) => Object.keys(given).length > 0),
    masking: FastCheck.record({
      kinds: FastCheck.subarray(["email" as const, "phone" as const, "card" as const]),
      patterns: FastCheck.constantFrom([], [{ name: "customer", pattern: "KD-\\d{6,8}" }]),
      sources: FastCheck.boolean(),
      tools: FastCheck.constantFrom([], ["order"])
    }),
    streamReasoning: FastCheck.constant(true)
  },
  { requiredKeys: [] }
)

const source = FastCheck.oneof(
  FastCheck.record({
    type: FastCheck.constant("URL" as const),
    config: FastCheck.record(
      {
        url: FastCheck.webUrl(),
        maxDepth: FastCheck.integer({ min: 0, max: 5 }),
        refresh: FastCheck.constant("daily" as const)
      },
      { requiredKeys: ["url"] }
    )
  }),
  FastCheck.record(
    {
      type: FastCheck.constant("TEXT" as const),
      config: FastCheck.record({ text: FastCheck.stringMatching(/^[ -~]{0,40}[a-z]$/) }),
      labels: FastCheck.constantFrom(["staff"], ["partners", "staff"])
    },
    { requiredKeys: ["type", "config"] }
  )
)

const tool = FastCheck.record(
  {
    description: FastCheck.constantFrom("Looks up an order.", "Sends it."),
    parameters: FastCheck.constant({ type: "object", properties: { id: { type: "string" } } }),
    timeout: FastCheck.integer({ min: 1, max: 30 }),
    http: FastCheck.record(
      {
        url: FastCheck.constantFrom("https://shop.example/orders/{id}", "https://shop.example/stock"),
        method: FastCheck.constantFrom("GET" as const, "POST" as const),
        headers: FastCheck.constant({ "X-Team": "support" })
      },
      { requiredKeys: ["url"] }
    )
  },
  { requiredKeys: ["http"] }
)

/** The same one may stand there twice. */
const testCase = FastCheck.record(
  {
    question: FastCheck.constantFrom("When?", "How much?", "Who are you?"),
    expectSources: FastCheck.constantFrom([], ["guide.md"]),
    expectFacts: FastCheck.constantFrom([], ["from nine to five", "on Monday"]),
    expectRefusal: FastCheck.constant(false),
    expectGrounding: FastCheck.boolean(),
    responseSchema: FastCheck.constant({ type: "object", properties: { why: {}, a: { type: "string" } } }),
    note: FastCheck.constant("Often asked.")
  },
  { requiredKeys: ["question", "expectSources", "expectFacts"] }
)

/** Only what is not as usual. */
const widget = FastCheck.record(
  {
    color: FastCheck.constantFrom("#ff0000", "#00ff00"),
    position: FastCheck.constant("left" as const),
    suggestions: FastCheck.constantFrom(["When?"], ["When?", "How much?"]),
    consent: FastCheck.constant({ text: "We keep what you write.", link: null }),
    allowedOrigins: FastCheck.constant(["https://shop.example"]),
    sourceScope: FastCheck.constant(null)
  },
  { requiredKeys: [] }
)

/** With sources, tools, cases and a widget, so that those of before go. */
const whole = FastCheck.record({
  agents: FastCheck.dictionary(
    name,
    FastCheck.tuple(
      agent,
      FastCheck.record({
        sources: FastCheck.dictionary(name, source, { maxKeys: 3 }),
        remoteTools: FastCheck.dictionary(FastCheck.stringMatching(/^[a-z]{1,8}$/), tool, { maxKeys: 3 }),
        cases: FastCheck.array(testCase, { maxLength: 5 }),
        widget
      })
    ).map(([settings, parts]) => ({ ...settings, ...parts })),
    { maxKeys: 3 }
  )
})

/** A file says which cases there are, and in no order. */
const inOrder = (cases: ReadonlyArray<unknown>) => cases.map((one) => JSON.stringify(one)).toSorted()

const read = (scope: { readonly tenantId: TenantId }) =>
  Effect.map(
    Effect.flatMap(Configurations, ({ read: all }) => all(scope)),
    (found) => asRead(found.config)
  )

/** As a file is read: without the lists that are empty. */
const asRead = ({ agents }: Configuration) => ({
  agents: Object.fromEntries(
    Object.entries(agents).map(([key, { cases = [], sources = {}, remoteTools = {}, ...settings }]) => [
      key,
      {
        ...settings,
        ...(Object.keys(sources).length === 0 ? {} : { sources }),
        ...(Object.keys(remoteTools).length === 0 ? {} : { remoteTools }),
        ...(cases.length === 0 ? {} : { cases: inOrder(cases) })
      }
    ])
  )
})

/** Written as `pull` writes: without what is as usual. */
const config = FastCheck.record({
  agents: FastCheck.dictionary(name, agent, { maxKeys: 5 })
})

eachEngineLive("A file of agents", (it, engine) => {
  it.effect("equals the file that is read back after it was applied, and a second plan is empty", () =>
    Effect.gen(function* () {
      const scope = yield* empty
      const configurations = yield* Configurations
      for (const given of FastCheck.sample(config, 40)) {
        const wanted = decode(given)
        yield* configurations.apply(scope, { config: wanted, prune: true })
        expect((yield* configurations.read(scope)).config).toEqual(wanted)
        expect((yield* configurations.plan(scope, { config: wanted, prune: true })).changes).toEqual([])
      }
    }).pipe(Effect.provide(live))
  )

  it.effect("creates its sources and remote tools, and removes those that it no longer names", () =>
    Effect.gen(function* () {
      const scope = yield* empty
      const configurations = yield* Configurations
      for (const given of FastCheck.sample(whole, 30)) {
        const wanted = decode(given)
        yield* configurations.apply(scope, { config: wanted, prune: true })
        expect(yield* read(scope)).toEqual(asRead(wanted))
        expect((yield* configurations.plan(scope, { config: wanted, prune: true })).changes).toEqual([])
        const alone = (yield* configurations.read(scope, true)).config
        expect(
          Object.values(alone.agents).flatMap((said) => [said.sources, said.remoteTools ?? said.cases])
        ).toEqual(Object.keys(alone.agents).flatMap(() => [undefined, undefined]))
        yield* configurations.apply(scope, { config: alone, prune: true })
        expect(yield* read(scope)).toEqual(asRead(wanted))
      }
    }).pipe(Effect.provide(live))
  )

  it.effect("lists added and removed cases, and keeps those made from turns", () =>
    Effect.gen(function* () {
      const scope = yield* empty
      const configurations = yield* Configurations
      const said = (...questions: ReadonlyArray<string>) =>
        decode({ agents: { Shop: { cases: questions.map((question) => ({ question })) } } })
      yield* configurations.apply(scope, { config: said("One?", "Two?", "Two?") })
      const sql = yield* SqlClient.SqlClient
      const before = yield* sql<{ readonly id: string }>`select id from test_cases order by id`
      yield* sql`insert into end_users (id, tenant_id) values ('usr_1', ${scope.tenantId})`
      yield* sql`
        insert into conversations (id, tenant_id, agent_id, end_user_id, channel)
        select 'cnv_1', tenant_id, id, 'usr_1', 'api' from agents`
      yield* sql`
        insert into agent_runs (id, tenant_id, agent_id, conversation_id, ticket, instance_id, user_message_id,
          user_message, period_start, status)
        select 'run_1', tenant_id, id, 'cnv_1', 1, 'instance', 'msg_1', 'Mine?', now(), 'complete' from agents`
      yield* sql`
        insert into test_cases (id, tenant_id, agent_id, question, expect_sources, expect_facts, origin, run_id)
        select 'tcs_z', tenant_id, id, 'Mine?', '[]', '[]', 'run', 'run_1' from agents`
      const wanted = { config: said("Three?", "Two?") }
      const { changes } = yield* configurations.plan(scope, wanted)
      expect(changes).toMatchObject([
        {
          action: "update",
          fields: [
            {
              field: "cases",
              before: [{ question: "One?" }, { question: "Two?" }],
              after: [{ question: "Three?" }]
            }
          ]
        }
      ])
      yield* configurations.apply(scope, wanted)
      const after = yield* sql<{ readonly id: string; readonly question: string }>`
        select id, question from test_cases order by id`
      expect(after.map(({ question }) => question)).toEqual(["Two?", "Three?", "Mine?"])
      expect(before.map(({ id }) => id)).toContain(after[0]?.id)
      expect((yield* configurations.plan(scope, wanted)).changes).toEqual([])
    }).pipe(Effect.provide(live))
  )

  it.effect("publishes no version below an agent's threshold, and then changes nothing", () =>
    Effect.gen(function* () {
      const scope = yield* empty
      const configurations = yield* Configurations
      const said = (instructions: string) =>
        decode({
          agents: { Help: { instructions }, Shop: { instructions, cases: [{ question: "When?" }] } }
        })
      yield* configurations.apply(scope, { config: said("One.") })
      const sql = yield* SqlClient.SqlClient
      yield* sql`
        insert into publish_thresholds (tenant_id, agent_id, min_pass, no_regression)
        select tenant_id, id, 0.9, true from agents`
      const before = (yield* configurations.read(scope)).config
      expect(yield* Effect.flip(configurations.apply(scope, { config: said("Two.") }))).toMatchObject({
        _tag: "CONFLICT",
        details: { gate: true }
      })
      expect((yield* configurations.read(scope)).config).toEqual(before)
      yield* configurations.apply(scope, { config: said("Two."), force: true })
      expect((yield* configurations.read(scope)).config.agents["Shop"]?.instructions).toBe("Two.")
    }).pipe(Effect.provide(live))
  )

  it.effect("revokes the tokens of removed agents after it was applied, and none when it fails", () =>
    Effect.gen(function* () {
      const scope = yield* empty
      const configurations = yield* Configurations
      yield* configurations.apply(scope, { config: decode({ agents: { One: {}, Two: {}, Three: {} } }) })
      const { changes } = yield* configurations.plan(scope, { config: decode({ agents: {} }), prune: true })
      const ids = changes.map(({ id }) => id)
      revocations.revoked.length = 0
      for (const [unreadable, revoked] of [
        [ids.at(-1) ?? null, []],
        [null, ids]
      ] as const) {
        revocations.unreadable = unreadable
        yield* Effect.exit(configurations.apply(scope, { config: decode({ agents: {} }), prune: true }))
        expect(revocations.revoked).toEqual(revoked)
      }
      expect((yield* configurations.read(scope)).config.agents).toEqual({})
    }).pipe(Effect.provide(live))
  )

  it.effect("reads only sources again whose content or address has changed", () =>
    Effect.gen(function* () {
      const scope = yield* empty
      const configurations = yield* Configurations
      const sql = yield* SqlClient.SqlClient
      const said = (text: string, url: string, labels: ReadonlyArray<string>) =>
        decode({
          agents: {
            Shop: {
              sources: {
                Note: { type: "TEXT", config: { text } },
                Page: { type: "URL", config: { url } },
                Same: { type: "TEXT", config: { text: "Same." }, labels }
              }
            }
          }
        })
      yield* configurations.apply(scope, { config: said("One.", "https://a.example/", []) })
      yield* sql`update ingestion_jobs set status = 'SUCCEEDED'`
      yield* configurations.apply(scope, { config: said("Two.", "https://b.example/", ["staff"]) })
      const queued = yield* sql<{ readonly name: string }>`
        select s.name from ingestion_jobs j join sources s on s.id = j.source_id where j.status = 'QUEUED' order by 1`
      expect(queued.map((row) => row.name)).toEqual(["Note", "Page"])
      const versions = yield* sql`select version from agent_versions`
      expect(versions.length).toBeLessThanOrEqual(1)
    }).pipe(Effect.provide(live))
  )

  it.effect("keeps a tool's secret that it omits, and never shows one in a plan or a file", () =>
    Effect.gen(function* () {
      const scope = yield* empty
      const configurations = yield* Configurations
      const said = (secret: string | undefined, header: string) =>
        decode({
          agents: {
            Shop: {
              remoteTools: {
                stock: {
                  http: { url: "https://shop.example/stock", headers: { "X-Key": header } },
                  auth: { kind: "bearer", ...(secret === undefined ? {} : { secret }) }
                }
              }
            }
          }
        })
      const without = yield* Effect.flip(configurations.plan(scope, { config: said(undefined, "a") }))
      expect(without._tag).toBe("VALIDATION_ERROR")
      const plans = [yield* configurations.apply(scope, { config: said("canary-one", "canary-a") })]
      for (const config of [said("canary-one", "canary-a"), said(undefined, "canary-a")]) {
        expect((yield* configurations.plan(scope, { config })).changes).toEqual([])
      }
      for (const config of [said("canary-two", "canary-a"), said(undefined, "canary-b")]) {
        const planned = yield* configurations.plan(scope, { config })
        expect(planned.changes).toMatchObject([
          { fields: [{ field: "remoteTools.stock", after: { hiddenValues: "changed" } }] }
        ])
        plans.push(planned, yield* configurations.apply(scope, { config }))
      }
      expect(JSON.stringify(plans)).not.toContain("canary")
      const { config } = yield* configurations.read(scope)
      expect(config.agents["Shop"]?.remoteTools?.["stock"]?.auth).toEqual({ kind: "bearer" })
      expect((yield* configurations.plan(scope, { config })).changes).toEqual([])
    }).pipe(Effect.provide(live))
  )

  it.effect("deletes exactly the agents that it names when it is destroyed", () =>
    Effect.gen(function* () {
      const scope = yield* empty
      const configurations = yield* Configurations
      yield* configurations.apply(scope, { config: decode({ agents: { Shop: {}, Help: {} } }) })
      const config = decode({ agents: { Shop: { instructions: "Other." }, Gone: {} } })
      const { changes } = yield* configurations.apply(scope, { config, destroy: true })
      expect(changes).toMatchObject([{ action: "delete", agent: "Shop" }])
      expect(Object.keys((yield* configurations.read(scope)).config.agents)).toEqual(["Help"])
    }).pipe(Effect.provide(live))
  )

  it.effect("does not change agents that it does not name, and lists each field before and after", () =>
    Effect.gen(function* () {
      const scope = yield* empty
      const configurations = yield* Configurations
      const first = decode({ agents: { Shop: { instructions: "Sell." }, Help: {} } })
      yield* configurations.apply(scope, { config: first })
      const second = decode({ agents: { Shop: { instructions: "Help.", retrieval: { topK: 3 } }, New: {} } })
      const { changes } = yield* configurations.plan(scope, { config: second })
      expect(changes).toMatchObject([
        {
          action: "update",
          agent: "Shop",
          fields: [
            { field: "instructions", before: "Sell.", after: "Help." },
            { field: "retrieval.topK", before: 6, after: 3 }
          ]
        },
        { action: "create", agent: "New", id: null }
      ])
      yield* configurations.apply(scope, { config: second })
      const { config: read } = yield* configurations.read(scope)
      expect(read).toEqual({ agents: { Help: {}, New: {}, Shop: second.agents["Shop"] } })
      const pruned = yield* configurations.plan(scope, { config: second, prune: true })
      expect(pruned.changes).toMatchObject([{ action: "delete", agent: "Help" }])
    }).pipe(Effect.provide(live))
  )

  it.effect("renames an agent that keeps its id, once", () =>
    Effect.gen(function* () {
      const scope = yield* empty
      const configurations = yield* Configurations
      const made = yield* configurations.apply(scope, {
        config: decode({ agents: { Old: { model: "small" } } })
      })
      const renamed = decode({ agents: { New: { renamedFrom: "Old", model: "small" } } })
      const { changes } = yield* configurations.apply(scope, { config: renamed, prune: true })
      expect(changes).toMatchObject([
        {
          action: "update",
          id: made.changes[0]?.id,
          fields: [{ field: "name", before: "Old", after: "New" }]
        }
      ])
      expect((yield* configurations.plan(scope, { config: renamed, prune: true })).changes).toEqual([])
      const doubled = decode({ agents: { Newer: { renamedFrom: "New" }, New: {} } })
      const refused = yield* Effect.flip(configurations.plan(scope, { config: doubled }))
      expect(refused._tag).toBe("VALIDATION_ERROR")
    }).pipe(Effect.provide(live))
  )

  it.effect("changes nothing when a part of it fails, or when the plan is outdated", () =>
    Effect.gen(function* () {
      const scope = yield* empty
      const configurations = yield* Configurations
      yield* configurations.apply(scope, { config: decode({ agents: { Shop: {} } }) })
      const before = yield* configurations.read(scope)
      const broken = decode({ agents: { A: {}, Shop: { instructions: "New." }, Z: { tools: ["nowhere"] } } })
      const failed = yield* Effect.flip(configurations.apply(scope, { config: broken, prune: true }))
      expect(failed._tag).toBe("VALIDATION_ERROR")
      expect(yield* configurations.read(scope)).toEqual(before)
      const late = decode({ agents: { Shop: { instructions: "Late." } } })
      const { revision } = yield* configurations.plan(scope, { config: late })
      yield* configurations.apply(scope, { config: decode({ agents: { Shop: { instructions: "Soon." } } }) })
      const outdated = yield* Effect.flip(configurations.apply(scope, { config: late, revision }))
      expect(outdated._tag).toBe("CONFLICT")
      expect((yield* configurations.read(scope)).config.agents["Shop"]?.instructions).toBe("Soon.")
      // Also by another version that is published, which makes no new one.
      const again = yield* configurations.plan(scope, { config: late })
      const [shop] = (yield* (yield* AgentStore).list(scope, { limit: 1 })).rows
      if (shop === undefined) return expect.unreachable()
      yield* (yield* AgentVersionStore).publish(scope, shop.id, 1)
      const rolledBack = yield* Effect.flip(
        configurations.apply(scope, { config: late, revision: again.revision })
      )
      expect(rolledBack._tag).toBe("CONFLICT")
    }).pipe(Effect.provide(live))
  )

  if (engine === "server")
    it.effect("does not replace a version that was published after the plan had been checked", () =>
      Effect.gen(function* () {
        const scope = yield* empty
        const sql = yield* SqlClient.SqlClient
        const configurations = yield* Configurations
        const said = (instructions: string) =>
          decode({ agents: { First: { instructions }, Second: { instructions } } })
        const made = yield* configurations.apply(scope, { config: said("One.") })
        yield* configurations.apply(scope, { config: said("Two.") })
        const [first, second] = made.changes.flatMap(({ id }) => (id === null ? [] : [id]))
        if (first === undefined || second === undefined) return expect.unreachable()
        const held = yield* Deferred.make<void>()
        const over = yield* Deferred.make<void>()
        const holding = yield* sql`select from agents where id = ${first} for update`.pipe(
          Effect.zipRight(Deferred.succeed(held, undefined)),
          Effect.zipRight(Deferred.await(over)),
          sql.withTransaction,
          Effect.fork
        )
        yield* Deferred.await(held)
        const applying = yield* Effect.fork(
          Effect.flip(configurations.apply(scope, { config: said("Three.") }))
        )
        yield* Effect.repeat(sql`select from pg_locks where not granted`, {
          until: (waiting) => waiting.length > 0
        })
        yield* (yield* AgentVersionStore).publish(scope, second, 1)
        yield* Deferred.succeed(over, undefined)
        yield* Fiber.join(holding)
        expect(yield* Fiber.join(applying)).toMatchObject({ _tag: "CONFLICT" })
        const { get } = yield* Agents
        expect(yield* get(scope, first)).toMatchObject({ version: 2, instructions: "Two." })
        expect(yield* get(scope, second)).toMatchObject({ version: 2, publishedVersion: 1 })
      }).pipe(Effect.provide(live))
    )

  it.effect("makes its caller the author of the new versions", () =>
    Effect.gen(function* () {
      const scope = yield* empty
      const configurations = yield* Configurations
      for (const instructions of ["First.", "Second."]) {
        yield* configurations.apply(scope, { config: decode({ agents: { Shop: { instructions } } }) })
      }
      const [shop] = (yield* (yield* AgentStore).list(scope, { limit: 1 })).rows
      if (shop === undefined) return expect.unreachable()
      const { rows } = yield* (yield* AgentVersionStore).list(scope, shop.id, { limit: 10, before: null })
      expect(rows.map((version) => version.author)).toEqual([scope.actor, scope.actor])
    }).pipe(Effect.provide(live))
  )

  it.effect("is applied by one of several concurrent requests; the others get a conflict", () =>
    Effect.gen(function* () {
      const scope = yield* empty
      const configurations = yield* Configurations
      for (let round = 0; round < 10; round++) {
        const { revision } = yield* configurations.read(scope)
        const attempts = [0, 1, 2, 3].map((each) =>
          configurations
            .apply(scope, {
              config: decode({
                agents: { Shop: { instructions: `${round} ${each}` }, [`New ${round} ${each}`]: {} }
              }),
              revision
            })
            .pipe(Effect.exit)
        )
        const ends = yield* Effect.all(attempts, { concurrency: "unbounded" })
        const winners = ends.flatMap((end, place) => (Exit.isSuccess(end) ? [place] : []))
        expect(winners).toHaveLength(1)
        const { config: read } = yield* configurations.read(scope)
        expect(read.agents["Shop"]?.instructions).toBe(`${round} ${winners[0]}`)
        const made = Object.keys(read.agents).filter((each) => each.startsWith(`New ${round} `))
        expect(made).toEqual([`New ${round} ${winners[0]}`])
      }
    }).pipe(Effect.provide(live))
  )

  it.effect("is refused while two agents have the same name", () =>
    Effect.gen(function* () {
      const scope = yield* empty
      const agents = yield* Agents
      const configurations = yield* Configurations
      yield* agents.create(scope, { name: "Twin" })
      yield* agents.create(scope, { name: "Twin" })
      const refused = yield* Effect.flip(configurations.read(scope))
      expect([refused._tag, refused.message]).toEqual(["CONFLICT", expect.stringContaining("Twin")])
    }).pipe(Effect.provide(live))
  )
})
