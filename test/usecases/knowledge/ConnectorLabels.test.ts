/** Labels of connector sources whose documents only some readers may read. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import {
  permanentError,
  registered,
  sourceReader,
  SourceReaders
} from "../../../src/capabilities/SourceReaders.ts"
import { SourceStore } from "../../../src/store/knowledge/Sources.ts"
import * as Fixtures from "../../Fixtures.ts"
import { layerReaders } from "../../readers/Site.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"
import { layerSettings } from "./ConnectorLayers.ts"
import { addSource, layerIngestOf, sync } from "./IngestHarness.ts"

const document = (uri: string, labels?: ReadonlyArray<string>) => ({
  uri,
  title: uri,
  format: "markdown" as const,
  content: `These are the words of ${uri}, and they are long enough to be read.`,
  ...(labels === undefined ? {} : { labels })
})

/** One document for everybody, one for `a`, and one for `a` and `b`. */
const documents = [document("all"), document("of a", ["a"]), document("of both", ["a", "b"])]

/** What readers of a source find: its labels now, those that wait, and its documents. */
const state = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [found] = yield* sql`
    select s.labels, s.next_labels as next, (
      select json_agg(d.uri order by d.uri) from documents d where d.source_id = s.id and d.generation = s.live_generation
    ) as uris from sources s`
  return found
})

const prepared = Effect.gen(function* () {
  yield* reset
  const control: { before: Effect.Effect<void>; isDown: boolean } = { before: Effect.void, isDown: false }
  const reader = sourceReader({
    name: "portal",
    title: { en: "Portal" },
    description: { en: "Articles." },
    settings: Schema.Struct({}),
    cursor: Schema.Null,
    position: Schema.Null,
    step: () =>
      Effect.suspend(() =>
        control.isDown
          ? Effect.fail(permanentError("unauthorized", "The portal answered 401."))
          : Effect.as(control.before, { documents, next: { done: null, complete: true } })
      )
  })
  const scope = yield* Fixtures.agent()
  const services = layerIngestOf(layerSettings(Layer.succeed(SourceReaders, registered([reader]))))
  return { control, scope, services }
})

eachEngineLive("Labels of a connector", (it) => {
  it.scoped(
    "take effect at once if fewer keys may read the source, else together with the documents for them",
    () =>
      Effect.gen(function* () {
        const { control, scope, services } = yield* prepared
        yield* Effect.gen(function* () {
          const sources = yield* SourceStore
          const id = yield* addSource(scope, "CONNECTOR", { reader: "portal", settings: {} })
          const relabel = (...labels: ReadonlyArray<string>) => sources.update(scope, id, { labels })
          yield* sync(scope, id)
          expect(yield* state).toEqual({ labels: [], next: null, uris: ["all"] })
          yield* relabel("a")
          expect(yield* state).toEqual({ labels: ["a"], next: null, uris: ["all"] })
          yield* sync(scope, id)
          expect(yield* state).toEqual({ labels: ["a"], next: null, uris: ["all", "of a", "of both"] })
          // Readers of `b` alone may not read what was chosen for those of `a`.
          yield* relabel("a", "b")
          expect(yield* state).toEqual({ labels: ["a"], next: ["a", "b"], uris: ["all", "of a", "of both"] })
          expect(yield* sources.find(scope, id)).toMatchObject({ labels: ["a", "b"] })
          control.isDown = true
          yield* sync(scope, id)
          expect(yield* state).toMatchObject({ labels: ["a"], next: ["a", "b"] })
          control.isDown = false
          yield* sync(scope, id)
          expect(yield* state).toEqual({ labels: ["a", "b"], next: null, uris: ["all", "of both"] })
          yield* relabel()
          expect(yield* state).toMatchObject({ labels: ["a", "b"], next: [] })
          yield* sync(scope, id)
          expect(yield* state).toEqual({ labels: [], next: null, uris: ["all"] })
        }).pipe(Effect.provide(services))
      }).pipe(Effect.provide(layerReaders))
  )

  it.scoped("that are changed during a sync never reveal its documents to others", () =>
    Effect.gen(function* () {
      const { control, scope, services } = yield* prepared
      yield* Effect.gen(function* () {
        const sources = yield* SourceStore
        const id = yield* addSource(scope, "CONNECTOR", { reader: "portal", settings: {} })
        yield* sources.update(scope, id, { labels: ["a"] })
        const begun = yield* Deferred.make<void>()
        const go = yield* Deferred.make<void>()
        control.before = Effect.zipRight(Deferred.succeed(begun, undefined), Deferred.await(go))
        const running = yield* Effect.fork(sync(scope, id))
        yield* Deferred.await(begun)
        yield* sources.update(scope, id, { labels: ["b"] })
        yield* Deferred.succeed(go, undefined)
        yield* Fiber.join(running)
        expect(yield* state).toEqual({ labels: ["a"], next: ["b"], uris: ["all", "of a", "of both"] })
        yield* sync(scope, id)
        expect(yield* state).toEqual({ labels: ["b"], next: null, uris: ["all", "of both"] })
        // The labels of before are given again while a pass reads for others.
        yield* sources.update(scope, id, { labels: ["a"] })
        const begunAgain = yield* Deferred.make<void>()
        const goAgain = yield* Deferred.make<void>()
        control.before = Effect.zipRight(Deferred.succeed(begunAgain, undefined), Deferred.await(goAgain))
        const other = yield* Effect.fork(sync(scope, id))
        yield* Deferred.await(begunAgain)
        yield* sources.update(scope, id, { labels: ["b"] })
        yield* Deferred.succeed(goAgain, undefined)
        yield* Fiber.join(other)
        expect(yield* state).toEqual({ labels: ["a"], next: ["b"], uris: ["all", "of a", "of both"] })
      }).pipe(Effect.provide(services))
    }).pipe(Effect.provide(layerReaders))
  )

  it.scoped("that are changed keep documents that a reader no longer names, if the labels allow it", () =>
    Effect.gen(function* () {
      yield* reset
      const scope = yield* Fixtures.agent()
      const listed = { first: [document("old")], later: [document("new")] }
      const read = { documents: listed.first }
      const newsOf = (name: string, limitsDocuments: boolean) =>
        sourceReader({
          name,
          title: { en: name },
          description: { en: "The latest articles." },
          settings: Schema.Struct({}),
          cursor: Schema.Null,
          position: Schema.Null,
          limitsDocuments,
          step: () =>
            Effect.sync(() => ({ documents: read.documents, next: { done: null, complete: false } }))
        })
      const readers = registered([newsOf("news", false), newsOf("portal", true)])
      yield* Effect.gen(function* () {
        const sources = yield* SourceStore
        const keptBy = (reader: string) =>
          Effect.gen(function* () {
            read.documents = listed.first
            const id = yield* addSource(scope, "CONNECTOR", { reader, settings: {} })
            yield* sync(scope, id)
            read.documents = listed.later
            yield* sources.update(scope, id, { labels: ["a"] })
            yield* sync(scope, id)
            const fewer = (yield* state)?.["uris"]
            yield* sources.update(scope, id, { labels: [] })
            yield* sync(scope, id)
            const more = (yield* state)?.["uris"]
            yield* sources.remove(scope, id)
            return { fewer, more }
          })
        expect(yield* keptBy("news")).toEqual({ fewer: ["new", "old"], more: ["new", "old"] })
        // A document that is not named again may have been for `a` alone.
        expect(yield* keptBy("portal")).toEqual({ fewer: ["new", "old"], more: ["new"] })
      }).pipe(Effect.provide(layerIngestOf(layerSettings(Layer.succeed(SourceReaders, readers)))))
    }).pipe(Effect.provide(layerReaders))
  )
})
