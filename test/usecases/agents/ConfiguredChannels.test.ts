import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/TestClock"
import * as TestContext from "effect/TestContext"
import { Configurations } from "../../../src/usecases/agents/Configurations.ts"
import { Channels } from "../../../src/usecases/channels/Channels.ts"
import { Widgets } from "../../../src/usecases/agents/Widgets.ts"
import { eachEngineLive } from "../../TestDatabase.ts"
import { asked, decode, empty, live, underWay } from "./ConfigurationWorld.ts"

const shop = (parts: object) => decode({ agents: { Shop: parts } })

const named = (token = "123-canary-one", more: object = {}) => ({
  "named:123": { accessToken: token, secrets: { appSecret: "canary-app" }, ...more }
})

const stored = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql`select channel, external_id as account, active, profile from channels order by channel`
)

eachEngineLive("Channels of a file of agents", (it) => {
  it.effect(
    "are created, changed and removed; the file that is read back has no secrets and an empty plan",
    () =>
      Effect.gen(function* () {
        const by = yield* empty
        const configurations = yield* Configurations
        const first = { config: shop({ channels: { ...named(), told: { accessToken: "77-canary" } } }) }
        const made = yield* configurations.apply(by, first)
        expect(made.changes[0]?.fields.map(({ field }) => field)).toEqual(
          expect.arrayContaining(["channels.named:123", "channels.told"])
        )
        expect(yield* stored).toMatchObject([
          { channel: "named", account: "123", active: true },
          { channel: "told", account: "77", active: true }
        ])
        expect((yield* configurations.plan(by, first)).changes).toEqual([])
        const { config } = yield* configurations.read(by)
        expect(config.agents["Shop"]?.channels).toEqual({ "named:123": {}, told: {} })
        expect((yield* configurations.plan(by, { config })).changes).toEqual([])
        const second = {
          config: shop({ channels: { "named:123": { settings: { tone: "kind" }, active: false } } })
        }
        const changed = yield* configurations.apply(by, second)
        expect(changed.changes[0]?.fields).toEqual([
          { field: "channels.told", before: {}, after: null },
          {
            field: "channels.named:123",
            before: { settings: {}, sourceScope: { labels: [] }, active: true },
            after: { settings: { tone: "kind" }, sourceScope: { labels: [] }, active: false }
          }
        ])
        expect(yield* stored).toMatchObject([{ account: "123", active: false, profile: { tone: "kind" } }])
        yield* configurations.apply(by, { config: shop({ channels: { "named:123": {} } }) })
        expect(yield* stored).toMatchObject([{ account: "123", active: true, profile: {} }])
        yield* configurations.apply(by, { config: shop({}) })
        expect(yield* stored).toHaveLength(1)
        yield* configurations.apply(by, { config: shop({ channels: {} }) })
        expect(yield* stored).toEqual([])
        expect(JSON.stringify([made, changed, config])).not.toContain("canary")
      }).pipe(Effect.provide(live))
  )

  it.effect("have a scope of sources; without one only sources without labels are read", () =>
    Effect.gen(function* () {
      const by = yield* empty
      const configurations = yield* Configurations
      const read = Effect.map(configurations.read(by), ({ config }) => config.agents["Shop"]?.channels)
      for (const scope of [{ sourceScope: null }, { sourceScope: { labels: ["staff"] } }, {}]) {
        const config = shop({ channels: named("123-canary-one", scope) })
        yield* configurations.apply(by, { config })
        expect(yield* read).toEqual({ "named:123": scope })
        expect((yield* configurations.plan(by, { config })).changes).toEqual([])
      }
    }).pipe(Effect.provide(live))
  )

  it.effect("show that a secret changes without showing it, and keep secrets that the file omits", () =>
    Effect.gen(function* () {
      const by = yield* empty
      const configurations = yield* Configurations
      yield* configurations.apply(by, { config: shop({ channels: named() }) })
      const other = { config: shop({ channels: named("123-canary-two") }) }
      const plan = yield* configurations.plan(by, other)
      expect(plan.changes).toMatchObject([{ fields: [{ after: { hiddenValues: "changed" } }] }])
      expect(JSON.stringify(plan)).not.toContain("canary")
      yield* configurations.apply(by, other)
      expect((yield* configurations.plan(by, other)).changes).toEqual([])
    }).pipe(Effect.provide(live))
  )

  it.effect("change nothing at all when a provider refuses a token, or a secret is missing", () =>
    Effect.gen(function* () {
      const by = yield* empty
      const configurations = yield* Configurations
      for (const channels of [
        named("999-canary"),
        { "named:123": { accessToken: "123-canary" } },
        { "named:123": {} },
        { named: { accessToken: "123-canary", secrets: { appSecret: "canary" } } },
        { "told:5": { accessToken: "6-canary" } },
        { nowhere: { accessToken: "canary" } }
      ]) {
        const config = shop({ instructions: "New.", channels })
        const refused = yield* Effect.flip(configurations.apply(by, { config }))
        expect([refused._tag, JSON.stringify(refused).includes("canary")]).toEqual([
          "VALIDATION_ERROR",
          false
        ])
      }
      expect((yield* configurations.read(by)).config.agents).toEqual({})
    }).pipe(Effect.provide(live))
  )

  it.effect("report the full path of every error, also for tools and settings", () =>
    Effect.gen(function* () {
      const by = yield* empty
      const configurations = yield* Configurations
      const told = (key: string) => ({ told: { accessToken: "7-canary", secrets: { [key]: "x" } } })
      const auth = { kind: "bearer" } as const
      const http = { url: "https://shop.example/" }
      for (const [parts, place] of [
        [
          { channels: { "named:123": { accessToken: "123-canary" } } },
          "channels named:123 secrets appSecret"
        ],
        [{ channels: named("999-canary") }, "channels named:123 accessToken"],
        [{ channels: told("key") }, "channels told secrets key"],
        [
          { channels: { told: { accessToken: "7-x", settings: { tune: "x" } } } },
          "channels told settings tune"
        ],
        [{ channels: { "told:5": { accessToken: "6-canary" } } }, "channels told:5 accessToken"],
        [{ channels: { told: {} } }, "channels told accessToken"],
        [{ channels: { nowhere: { accessToken: "canary" } } }, "channels nowhere channel"],
        [{ remoteTools: { stock: { http, auth } } }, "remoteTools stock auth"],
        [{ tools: ["none"] }, "tools 0"]
      ] as const) {
        const refused = yield* Effect.flip(configurations.apply(by, { config: shop(parts) }))
        const issues = (refused.details?.["issues"] ?? []) as ReadonlyArray<{ path: ReadonlyArray<string> }>
        expect(issues.map(({ path }) => path.join(" "))).toEqual([`config agents Shop ${place}`])
      }
    }).pipe(Effect.provide(live))
  )

  it.effect("report an account that is already used, and the agent that requests it", () =>
    Effect.gen(function* () {
      const by = yield* empty
      const configurations = yield* Configurations
      yield* configurations.apply(by, { config: shop({ channels: named() }) })
      const rival = decode({ agents: { Shop: {}, Desk: { channels: named() } } })
      const refused = yield* Effect.flip(configurations.apply(by, { config: rival }))
      expect(refused).toMatchObject({
        _tag: "CONFLICT",
        details: { issues: [{ path: ["config", "agents", "Desk", "channels", "named:123"] }] }
      })
      expect(yield* stored).toHaveLength(1)
    }).pipe(Effect.provide(live))
  )

  it.effect("move to another agent of the file, whichever of the two it names first", () =>
    Effect.gen(function* () {
      const by = yield* empty
      const configurations = yield* Configurations
      const sql = yield* SqlClient.SqlClient
      const owners = sql`
        select name, active from channels join agents on agents.id = agent_id where external_id = '123' order by name`
      const apply = (agents: object, more: object = {}) =>
        configurations.apply(by, { config: decode({ agents }), ...more })
      yield* apply({ Shop: { channels: named() }, Desk: {} })
      yield* apply({ Desk: { channels: named() }, Shop: { channels: {} } })
      expect(yield* owners).toEqual([{ name: "Desk", active: true }])
      yield* apply({ Desk: { channels: {} }, Shop: { channels: named() } })
      expect(yield* owners).toEqual([{ name: "Shop", active: true }])
      const inactive = { "named:123": { active: false } }
      yield* apply({ Desk: { channels: named() }, Shop: { channels: inactive } })
      yield* apply({ Shop: { channels: named() }, Desk: { channels: inactive } })
      expect(yield* owners).toEqual([
        { name: "Desk", active: false },
        { name: "Shop", active: true }
      ])
      const { changes } = yield* apply({ Kiosk: { channels: named() } }, { prune: true })
      expect(changes.map(({ action, agent }) => [action, agent]).toSorted()).toEqual([
        ["create", "Kiosk"],
        ["delete", "Desk"],
        ["delete", "Shop"]
      ])
      expect(yield* owners).toEqual([{ name: "Kiosk", active: true }])
    }).pipe(Effect.provide(live))
  )

  it.effect("are verified at most eight at a time over all agents", () =>
    Effect.gen(function* () {
      const by = yield* empty
      const configurations = yield* Configurations
      const of = (agent: number) =>
        Object.fromEntries(
          Array.from({ length: 10 }, (_, place) => {
            const account = `${agent}${place}`
            return [`told:${account}`, { accessToken: `${account}-canary` }] as const
          })
        )
      const agents = { One: { channels: of(1) }, Two: { channels: of(2) } }
      yield* configurations.apply(by, { config: decode({ agents }) })
      expect([underWay.most, asked.length, (yield* stored).length]).toEqual([8, 20, 20])
    }).pipe(Effect.provide(live))
  )

  it.effect(
    "whose provider does not answer are reported after one minute in total, and nothing is changed",
    () =>
      Effect.gen(function* () {
        const by = yield* empty
        const configurations = yield* Configurations
        const channels = {
          "told:01": { accessToken: "01-canary" },
          "told:02": { accessToken: "02-canary" },
          "told:5": { accessToken: "5-canary" }
        }
        const applied = yield* Effect.fork(
          Effect.flip(configurations.apply(by, { config: shop({ channels }) })).pipe(Effect.uninterruptible)
        )
        yield* Effect.async<void>((resume) => {
          const look = setInterval(() => {
            if (asked.length < 3 || underWay.now > 2) return
            clearInterval(look)
            resume(Effect.void)
          }, 10)
        })
        yield* TestClock.adjust("59 seconds")
        expect(underWay.now).toBe(2)
        yield* TestClock.adjust("1 second")
        expect(yield* Fiber.join(applied)).toMatchObject({
          _tag: "SERVICE_UNAVAILABLE",
          details: {
            issues: [
              { path: ["config", "agents", "Shop", "channels", "told:01"] },
              { path: ["config", "agents", "Shop", "channels", "told:02"] }
            ]
          }
        })
        expect([underWay.now, yield* stored]).toEqual([0, []])
      }).pipe(Effect.provide(live), Effect.provide(TestContext.TestContext))
  )

  it.effect("call no provider for a plan, and none for unchanged accounts", () =>
    Effect.gen(function* () {
      const by = yield* empty
      const configurations = yield* Configurations
      const config = shop({ channels: named() })
      yield* configurations.plan(by, { config })
      expect(asked).toEqual([])
      yield* configurations.apply(by, { config })
      expect(asked).toEqual(["named 123"])
      yield* configurations.apply(by, { config: shop({ instructions: "New.", channels: named() }) })
      expect(asked).toEqual(["named 123"])
    }).pipe(Effect.provide(live))
  )

  it.effect("are refused if the name is ambiguous, and if two entries name one account", () =>
    Effect.gen(function* () {
      const by = yield* empty
      const configurations = yield* Configurations
      const two = shop({
        channels: { "told:5": { accessToken: "5-canary" }, "told:6": { accessToken: "6-canary" } }
      })
      yield* configurations.apply(by, { config: two })
      const { config } = yield* configurations.read(by)
      expect(Object.keys(config.agents["Shop"]?.channels ?? {})).toEqual(["told:5", "told:6"])
      const vague = yield* Effect.flip(configurations.plan(by, { config: shop({ channels: { told: {} } }) }))
      expect(vague).toMatchObject({
        details: { issues: [{ message: expect.stringContaining("several") }] }
      })
      yield* configurations.apply(by, { config: shop({ channels: { "told:5": {} } }) })
      const doubled = shop({ channels: { "told:5": {}, told: {} } })
      expect((yield* Effect.flip(configurations.plan(by, { config: doubled })))._tag).toBe("VALIDATION_ERROR")
    }).pipe(Effect.provide(live))
  )

  it.effect("make a plan outdated when a channel is changed in the dashboard", () =>
    Effect.gen(function* () {
      const by = yield* empty
      const configurations = yield* Configurations
      const made = yield* configurations.apply(by, { config: shop({ channels: named() }) })
      const id = made.changes[0]?.id
      if (id === undefined || id === null) return expect.unreachable()
      const late = { config: shop({ instructions: "Late." }) }
      const { revision } = yield* configurations.plan(by, late)
      const channels = yield* Channels
      const [channel] = (yield* channels.list(by, id, { limit: 1 })).rows
      if (channel === undefined) return expect.unreachable()
      yield* channels.patch(by, channel.id, { active: false })
      expect((yield* Effect.flip(configurations.apply(by, { ...late, revision })))._tag).toBe("CONFLICT")
      const again = yield* configurations.plan(by, late)
      yield* (yield* Widgets).patch(by, id, { color: "#ff0000" })
      const refused = yield* Effect.flip(configurations.apply(by, { ...late, revision: again.revision }))
      expect(refused._tag).toBe("CONFLICT")
    }).pipe(Effect.provide(live))
  )
})

eachEngineLive("The widget of a file of agents", (it) => {
  it.effect("gets its public name once, keeps it, and is unchanged if the file omits it", () =>
    Effect.gen(function* () {
      const by = yield* empty
      const configurations = yield* Configurations
      const widgets = yield* Widgets
      const made = yield* configurations.apply(by, { config: shop({ widget: {} }) })
      const id = made.changes[0]?.id
      if (id === undefined || id === null) return expect.unreachable()
      const first = yield* widgets.get(by, id)
      expect(first.publicId).toMatch(/^wgt_/)
      yield* configurations.apply(by, { config: shop({ widget: { color: "#ff0000", greeting: "Hello" } }) })
      yield* configurations.apply(by, { config: shop({}) })
      const second = yield* widgets.get(by, id)
      expect([second.publicId, second.look.color, second.look.greeting]).toEqual([
        first.publicId,
        "#ff0000",
        "Hello"
      ])
      const { changes } = yield* configurations.apply(by, {
        config: shop({ widget: { color: "#ff0000" } })
      })
      expect(changes[0]?.fields).toEqual([
        { field: "widget", before: { color: "#ff0000", greeting: "Hello" }, after: { color: "#ff0000" } }
      ])
      expect((yield* widgets.get(by, id)).look.greeting).toBe(null)
    }).pipe(Effect.provide(live))
  )
})
