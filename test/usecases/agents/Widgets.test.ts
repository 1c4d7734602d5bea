import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Either from "effect/Either"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { layerScrypt } from "../../../src/capabilities/Credentials/Scrypt.ts"
import { KeyStore } from "../../../src/capabilities/KeyStore.ts"
import { layerSql } from "../../../src/capabilities/KeyStore/Sql.ts"
import { PatchWidget } from "../../../src/domain/agents/Widget.ts"
import { AgentId } from "../../../src/domain/Ids.ts"
import { ApiKeyStore } from "../../../src/store/accounts/ApiKeys.ts"
import { AgentStore } from "../../../src/store/agents/Agents.ts"
import { AgentWidgetStore } from "../../../src/store/agents/Widgets.ts"
import { SourceStore } from "../../../src/store/knowledge/Sources.ts"
import { Keys } from "../../../src/usecases/accounts/Keys.ts"
import { Widgets } from "../../../src/usecases/agents/Widgets.ts"
import { SourceScopes } from "../../../src/usecases/knowledge/SourceScopes.ts"
import * as Fixtures from "../../Fixtures.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"

const live = Widgets.Default.pipe(
  Layer.provideMerge(Keys.Default),
  Layer.provideMerge(SourceScopes.Default),
  Layer.provideMerge(
    Layer.mergeAll(AgentStore.Default, AgentWidgetStore.Default, ApiKeyStore.Default, SourceStore.Default)
  ),
  Layer.provideMerge(layerSql),
  Layer.provide(layerScrypt({ log2N: 10, r: 8, p: 1 }))
)

const decode = Schema.decodeUnknownSync(PatchWidget)
const decodeEither = Schema.decodeUnknownEither(PatchWidget)

const begin = Effect.gen(function* () {
  yield* reset
  const scope = yield* Fixtures.agent()
  return { scope, widgets: yield* Widgets }
})

/** What opens with a public name. */
const keyOf = (publicId: string | null) =>
  Effect.flatMap(KeyStore, ({ find }) => find(Redacted.make(publicId ?? "")))

eachEngineLive("The widget of an agent", (it) => {
  it.effect("has no public name before it is set up, and keeps the one it gets", () =>
    Effect.gen(function* () {
      const { scope, widgets } = yield* begin
      expect(yield* widgets.get(scope, scope.agentId)).toMatchObject({ publicId: null, version: 0 })
      const first = yield* widgets.patch(
        scope,
        scope.agentId,
        decode({ color: "#FF0000", allowedOrigins: ["https://shop.example/"] })
      )
      expect(first).toMatchObject({
        version: 1,
        allowedOrigins: ["https://shop.example"],
        look: { color: "#ff0000", position: "right" }
      })
      const key = Option.getOrThrow(yield* keyOf(first.publicId))
      expect(key).toMatchObject({
        agentId: scope.agentId,
        permissions: ["chat"],
        allowedOrigins: ["https://shop.example"]
      })
      const second = yield* widgets.patch(
        scope,
        scope.agentId,
        decode({ position: "left", allowedOrigins: ["https://other.example"] }),
        1
      )
      expect(second).toMatchObject({
        publicId: first.publicId,
        version: 2,
        look: { color: "#ff0000", position: "left" }
      })
      expect(Option.getOrThrow(yield* keyOf(first.publicId)).allowedOrigins).toEqual([
        "https://other.example"
      ])
      expect(yield* widgets.get(scope, scope.agentId)).toEqual(second)
    }).pipe(Effect.provide(live))
  )

  it.effect("refuses a change that was made from an older version, and changes nothing", () =>
    Effect.gen(function* () {
      const { scope, widgets } = yield* begin
      const one = yield* widgets.patch(scope, scope.agentId, decode({ avatar: "S" }), 0)
      const late = yield* Effect.exit(widgets.patch(scope, scope.agentId, decode({ avatar: "T" }), 0))
      expect(Exit.isFailure(late) && String(late.cause)).toContain("changed since you read it")
      expect(yield* widgets.get(scope, scope.agentId)).toEqual(one)
    }).pipe(Effect.provide(live))
  )

  it.effect("creates one key for concurrent first changes", () =>
    Effect.gen(function* () {
      const { scope, widgets } = yield* begin
      const set = (avatar: string) => widgets.patch(scope, scope.agentId, decode({ avatar }))
      const made = yield* Effect.all([set("A"), set("B"), set("C")], { concurrency: 3 })
      expect(new Set(made.map(({ publicId }) => publicId)).size).toBe(1)
      const sql = yield* SqlClient.SqlClient
      expect(yield* sql`select 1 from api_keys`).toHaveLength(1)
    }).pipe(Effect.provide(live))
  )

  it.effect("lets visitors read sources without labels by default", () =>
    Effect.gen(function* () {
      const { scope, widgets } = yield* begin
      const first = yield* widgets.patch(scope, scope.agentId, decode({ avatar: "S" }))
      const readable = Effect.map(keyOf(first.publicId), (key) => Option.getOrThrow(key).sourceScope)
      expect([first.sourceScope, yield* readable]).toEqual([{ labels: [] }, { labels: [] }])
      for (const sourceScope of [{ labels: ["a", "b"] }, null, { labels: [], sourceIds: [] }]) {
        const { sourceScope: told } = yield* widgets.patch(scope, scope.agentId, decode({ sourceScope }))
        expect([told, yield* readable]).toEqual([sourceScope, sourceScope])
        yield* widgets.patch(scope, scope.agentId, decode({ avatar: "T" }))
        expect(yield* readable).toEqual(sourceScope)
      }
    }).pipe(Effect.provide(live))
  )

  it.effect("gets a new public name after its key was revoked, and keeps its look and its scope", () =>
    Effect.gen(function* () {
      const { scope, widgets } = yield* begin
      const sourceScope = { labels: ["staff"] }
      const first = yield* widgets.patch(scope, scope.agentId, decode({ avatar: "S", sourceScope }))
      const { keyId } = Option.getOrThrow(yield* keyOf(first.publicId))
      yield* (yield* Keys).revoke(scope, keyId)
      expect(yield* widgets.get(scope, scope.agentId)).toMatchObject({
        publicId: null,
        look: { avatar: "S" }
      })
      const next = yield* widgets.patch(scope, scope.agentId, decode({ color: "#000000" }))
      expect(next.look).toMatchObject({ avatar: "S", color: "#000000" })
      expect(next.sourceScope).toEqual(sourceScope)
      expect(next.publicId).not.toBe(first.publicId)
      expect(Option.isNone(yield* keyOf(first.publicId))).toBe(true)
    }).pipe(Effect.provide(live))
  )

  it.effect("is not found for another tenant", () =>
    Effect.gen(function* () {
      const { scope, widgets } = yield* begin
      const other = yield* Fixtures.agent()
      for (const attempt of [
        widgets.get(other, scope.agentId),
        widgets.patch(other, scope.agentId, decode({ avatar: "X" })),
        widgets.patch(scope, AgentId.make("agt_nobody"), decode({ avatar: "X" }))
      ]) {
        expect(String(yield* Effect.flip(attempt))).toContain("There is no such agent.")
      }
    }).pipe(Effect.provide(live))
  )

  it.effect("shows the agent's greeting if it has none", () =>
    Effect.gen(function* () {
      const { scope, widgets } = yield* begin
      const sql = yield* SqlClient.SqlClient
      yield* sql`update agents set greeting = 'Moin' where id = ${scope.agentId}`
      expect(yield* widgets.publicView(scope)).toMatchObject({ name: "Test agent", greeting: "Moin" })
      yield* widgets.patch(scope, scope.agentId, decode({ greeting: "Hello" }))
      expect(yield* widgets.publicView(scope)).toMatchObject({ greeting: "Hello" })
      yield* widgets.patch(scope, scope.agentId, decode({ greeting: null }))
      expect(yield* widgets.publicView(scope)).toMatchObject({ greeting: "Moin" })
    }).pipe(Effect.provide(live))
  )

  it.effect("refuses a named colour, a link without https, a long avatar and a fifth suggestion", () =>
    Effect.sync(() => {
      for (const wrong of [
        { color: "red" },
        { color: "#fff" },
        { avatar: "ABC" },
        { position: "middle" },
        { greeting: "" },
        { suggestions: ["1", "2", "3", "4", "5"] },
        { suggestions: ["x".repeat(121)] },
        { consent: { text: "We keep it.", link: { label: "Privacy", url: "http://shop.example/" } } },
        { consent: { text: "We keep it.", link: { label: "Privacy", url: "javascript:alert(1)" } } }
      ]) {
        expect([wrong, Either.isLeft(decodeEither(wrong))]).toEqual([wrong, true])
      }
      expect(decode({ avatar: " 👩‍🚀 ", consent: { text: "We keep it.", link: null } })).toEqual({
        avatar: "👩‍🚀",
        consent: { text: "We keep it.", link: null }
      })
    }).pipe(Effect.provide(live))
  )
})
