/** Versions of an agent as turns see them. */
import { createHash } from "node:crypto"
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import * as Stream from "effect/Stream"
import { layerSql } from "../../../src/capabilities/AuditLog/Sql.ts"
import type { AgentId } from "../../../src/domain/Ids.ts"
import { ConversationId, newId, RunId } from "../../../src/domain/Ids.ts"
import { type AgentSettings, AgentStore } from "../../../src/store/agents/Agents.ts"
import { AgentVersionStore } from "../../../src/store/agents/AgentVersions.ts"
import { AgentRuns } from "../../../src/usecases/chat/AgentRuns.ts"
import { ChatTurn, type RunningTurn } from "../../../src/usecases/chat/ChatTurn.ts"
import { noTurnOptions } from "../../../src/usecases/chat/TurnOptions.ts"
import * as Fixtures from "../../Fixtures.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"
import { request, says, Script, turnLayer } from "./TurnHarness.ts"

const first: AgentSettings = {
  name: "Helper",
  instructions: "Version one.",
  model: null,
  greeting: null,
  topK: 6,
  minScore: null,
  tools: [],
  mode: "strict",
  unsupported: "annotate",
  contextTokens: 6_000,
  maxSearches: 0,
  length: "default",
  tone: "default",
  masking: null,
  streamReasoning: false
}

/** From 0 to below 1: the share above which a conversation has the other version. */
const placeOf = (conversationId: string) =>
  createHash("sha256").update(conversationId).digest().readUInt32BE() / 2 ** 32

const processLayer = AgentRuns.Default.pipe(
  Layer.provideMerge(turnLayer()),
  Layer.provideMerge(Layer.mergeAll(layerSql, AgentStore.Default, AgentVersionStore.Default))
)

const onFreshData = <A, E, R>(test: Effect.Effect<A, E, R>) =>
  Effect.zipRight(reset, Effect.provide(test, processLayer))

/** A tenant with an agent of one version. */
const begun = Effect.gen(function* () {
  const tenant = yield* Fixtures.agent()
  const agents = yield* AgentStore
  const { id } = yield* agents.insert(tenant, { id: yield* newId.agent, ...first })
  const scope = { ...tenant, agentId: id }
  const key = yield* Fixtures.key(scope)
  const change = (changes: Partial<AgentSettings>, publish = true) =>
    agents.update(scope, id, { changes, from: null, publish, note: null, author: null })
  return { agents, change, id, key, scope, versions: yield* AgentVersionStore }
})

type Begun = Effect.Effect.Success<typeof begun>

/** How the agent is asked, and with which version's words the model was told to answer. */
const turn = (
  { key }: Pick<Begun, "key">,
  fields: Readonly<Record<string, unknown>> = {},
  version: number | null = null
) =>
  Effect.gen(function* () {
    const chat = yield* ChatTurn
    const { requests } = yield* Script
    const options = version === null ? noTurnOptions : { ...noTurnOptions, version }
    const started = yield* chat.start(key, request(fields), "api", options)
    const parts = yield* Stream.runCollect(started.parts)
    const done = [...parts].find(({ _tag }) => _tag === "Done")
    const told = JSON.stringify((yield* Ref.get(requests)).at(-1)?.prompt)
    const conversationId = done?._tag === "Done" ? done.result.conversationId : undefined
    return { started, conversationId, told: /Version \w+\./.exec(told)?.[0] }
  })

const traced = ({ key }: Pick<Begun, "key">, { runId }: RunningTurn) =>
  Effect.flatMap(AgentRuns, (runs) =>
    runs.read(key, runId ?? RunId.make("none"), { limit: 20, after: 0 }, "test")
  )

const stored = ({ agents, scope }: Begun, id: AgentId) =>
  Effect.map(agents.find(scope, id), Option.getOrThrow)

eachEngineLive("A turn and the versions of its agent", (it) => {
  it.effect("uses the published version and names it in its trace", () =>
    onFreshData(
      Effect.gen(function* () {
        const world = yield* begun
        const one = yield* turn(world)
        yield* world.change({ instructions: "Version two." })
        const two = yield* turn(world)
        yield* world.versions.publish(world.scope, world.id, 1)
        const back = yield* turn(world)
        expect([one.told, two.told, back.told]).toEqual(["Version one.", "Version two.", "Version one."])
        const versions = yield* Effect.forEach([one, two, back], ({ started }) => traced(world, started))
        expect(versions.map(({ agentVersion }) => agentVersion)).toEqual([1, 2, 1])
      })
    )
  )

  it.effect("uses no draft, unless it is a trial of one", () =>
    onFreshData(
      Effect.gen(function* () {
        const world = yield* begun
        yield* world.change({ instructions: "Version two.", tools: [], topK: 2 }, false)
        const published = yield* turn(world)
        const trial = yield* turn(world, {}, 2)
        expect([published.told, trial.told]).toEqual(["Version one.", "Version two."])
        expect((yield* traced(world, trial.started)).agentVersion).toBe(2)
        expect((yield* turn(world)).told).toBe("Version one.")
      })
    )
  )

  it.effect("keeps its version when another one is published meanwhile", () =>
    onFreshData(
      Effect.gen(function* () {
        const world = yield* begun
        const { reply, requests } = yield* Script
        const searching = yield* Deferred.make<void>()
        const gate = yield* Deferred.make<void>()
        yield* Ref.set(reply, (asked) =>
          Stream.unwrap(
            Deferred.succeed(searching, undefined).pipe(
              Effect.zipRight(Deferred.await(gate)),
              Effect.as(says("Hello")(asked))
            )
          )
        )
        const under = yield* Effect.fork(turn(world))
        yield* Deferred.await(searching)
        yield* world.change({ instructions: "Version two." })
        yield* Deferred.succeed(gate, undefined)
        const ended = yield* Fiber.join(under)
        expect((yield* traced(world, ended.started)).agentVersion).toBe(1)
        expect((yield* Ref.get(requests)).map(({ prompt }) => JSON.stringify(prompt))).toEqual([
          expect.stringContaining("Version one.")
        ])
      })
    )
  )

  it.effect("that stores nothing uses the published version", () =>
    onFreshData(
      Effect.gen(function* () {
        const world = yield* begun
        const sql = yield* SqlClient.SqlClient
        yield* world.change({ instructions: "Version two." })
        expect((yield* turn(world, { persist: false })).told).toBe("Version two.")
        expect(yield* sql`select id from agent_runs`).toEqual([])
      })
    )
  )

  it.effect("from before versions existed names none", () =>
    onFreshData(
      Effect.gen(function* () {
        const world = yield* begun
        const sql = yield* SqlClient.SqlClient
        const { started } = yield* turn(world)
        yield* sql`update agent_runs set agent_version = null`
        expect((yield* traced(world, started)).agentVersion).toBeNull()
      })
    )
  )

  it.effect("has the version of its conversation's share, in every turn of the conversation", () =>
    onFreshData(
      Effect.gen(function* () {
        const world = yield* begun
        const share = 0.5
        yield* world.change({ instructions: "Version two." }, false)
        yield* world.versions.split(world.scope, world.id, { version: 2, share })
        const seen = yield* Effect.forEach(Array.from({ length: 12 }), () =>
          Effect.gen(function* () {
            const opened = yield* turn(world)
            const conversationId = ConversationId.make(`${opened.conversationId}`)
            const next = yield* turn(world, { conversationId })
            const expected = placeOf(conversationId) < share ? 2 : 1
            const words = expected === 2 ? "Version two." : "Version one."
            expect([opened.told, next.told]).toEqual([words, words])
            const traces = yield* Effect.forEach([opened, next], ({ started }) => traced(world, started))
            expect(traces.map(({ agentVersion }) => agentVersion)).toEqual([expected, expected])
            return conversationId
          })
        )
        yield* world.versions.split(world.scope, world.id, null)
        for (const conversationId of seen.slice(0, 4))
          expect((yield* turn(world, { conversationId })).told).toBe("Version one.")
        yield* world.versions.split(world.scope, world.id, { version: 2, share: 1 })
        expect((yield* turn(world)).told).toBe("Version two.")
      })
    )
  )
})

const texts = FastCheck.string({ unit: "grapheme", maxLength: 40 })
const changes = FastCheck.record(
  {
    name: texts,
    instructions: texts,
    model: FastCheck.option(texts),
    greeting: FastCheck.option(texts),
    topK: FastCheck.integer({ min: 1, max: 20 }),
    minScore: FastCheck.option(FastCheck.integer({ min: 0, max: 100 }).map((hundredths) => hundredths / 100)),
    tools: FastCheck.array(FastCheck.constantFrom("stock", "order_status"), { maxLength: 2 }),
    mode: FastCheck.constantFrom("strict" as const, "general" as const),
    unsupported: FastCheck.constantFrom("annotate" as const, "withhold" as const, "handoff" as const),
    contextTokens: FastCheck.integer({ min: 500, max: 32_000 }),
    maxSearches: FastCheck.integer({ min: 0, max: 8 }),
    length: FastCheck.constantFrom("default" as const, "short" as const, "detailed" as const),
    tone: FastCheck.constantFrom("default" as const, "friendly" as const, "formal" as const),
    masking: FastCheck.option(
      FastCheck.record({
        kinds: FastCheck.subarray(["email" as const, "phone" as const, "card" as const]),
        patterns: FastCheck.constantFrom([], [{ name: "customer", pattern: "KD-\\d{6}" }]),
        sources: FastCheck.boolean(),
        tools: FastCheck.constantFrom([], ["order"])
      })
    ),
    streamReasoning: FastCheck.boolean()
  },
  { requiredKeys: [] }
)
const lives = FastCheck.array(
  FastCheck.oneof(
    FastCheck.record({ changes, publish: FastCheck.boolean() }),
    FastCheck.record({ publishes: FastCheck.nat(20) })
  ),
  { maxLength: 12 }
)

/** NUL is what the database stores in no text. */
const storable = (settings: Partial<AgentSettings>) => !JSON.stringify(settings).includes("\\u0000")

eachEngineLive("Publishing a version", (it) => {
  it.effect("restores exactly the settings of the version", () =>
    onFreshData(
      Effect.gen(function* () {
        for (const life of FastCheck.sample(lives, { numRuns: 25, seed: 14 })) {
          const world = yield* begun
          const recorded: Array<AgentSettings> = [first]
          let published = 1
          for (const step of life) {
            if ("publishes" in step) {
              published = 1 + (step.publishes % recorded.length)
              yield* world.versions.publish(world.scope, world.id, published)
            } else if (storable(step.changes)) {
              yield* world.change(step.changes, step.publish)
              recorded.push({ ...(recorded[published - 1] ?? first), ...step.changes })
              if (step.publish) published = recorded.length
            }
            const settings = recorded[published - 1] ?? first
            const { grounding, retrieval, style, ...agent } = yield* stored(world, world.id)
            expect({ ...agent, ...retrieval, ...grounding, ...style }).toMatchObject({
              ...settings,
              version: recorded.length,
              publishedVersion: published
            })
          }
          for (const [place, settings] of recorded.entries())
            expect(
              Option.getOrThrow(yield* world.agents.settingsOf(world.scope, world.id, place + 1))
            ).toEqual(settings)
        }
      })
    )
  )

  it.effect("concurrent with changes leaves one version with all of its settings", () =>
    onFreshData(
      Effect.gen(function* () {
        const world = yield* begun
        yield* Effect.all(
          Array.from({ length: 30 }, (_, place) =>
            place % 3 === 0
              ? world.versions.publish(world.scope, world.id, 1)
              : world.change({ instructions: `Words ${place}`, greeting: `Words ${place}` })
          ),
          { concurrency: 8, discard: true }
        )
        const { publishedVersion, version, ...agent } = yield* stored(world, world.id)
        expect(version).toBe(21)
        const recorded = yield* world.agents.settingsOf(world.scope, world.id, publishedVersion)
        expect(Option.getOrThrow(recorded)).toMatchObject({
          instructions: agent.instructions,
          greeting: agent.greeting
        })
      })
    )
  )

  it.effect("of another tenant's agent changes nothing", () =>
    onFreshData(
      Effect.gen(function* () {
        const world = yield* begun
        const other = yield* Fixtures.agent()
        yield* world.change({ instructions: "Version two." })
        expect(Option.isNone(yield* world.versions.publish(other, world.id, 1))).toBe(true)
        expect(yield* world.versions.withPrevious(other, world.id, 1)).toEqual([])
        expect((yield* world.versions.list(other, world.id, { limit: 9, before: null })).rows).toEqual([])
        expect((yield* stored(world, world.id)).publishedVersion).toBe(2)
      })
    )
  )
})
