import { createHash } from "node:crypto"
import * as SqlClient from "@effect/sql/SqlClient"
import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as QueueTable from "../../../src/capabilities/JobQueue/Table.ts"
import { layerMemory } from "../../../src/capabilities/ArtifactStore.ts"
import { registered, sourceReader, SourceReaders } from "../../../src/capabilities/SourceReaders.ts"
import { optional } from "../../../src/domain/Optional.ts"
import { feed } from "../../../src/readers/connectors/Feed.ts"
import { repository } from "../../../src/readers/connectors/Repository.ts"
import { layer as builtIn } from "../../../src/readers/connectors/Registered.ts"
import { EntitlementStore } from "../../../src/store/billing/Entitlements.ts"
import { IdempotencyKeyStore } from "../../../src/store/IdempotencyKeys.ts"
import { ArtifactRows } from "../../../src/store/knowledge/ArtifactRows.ts"
import { IngestionJobStore } from "../../../src/store/knowledge/IngestionJobs.ts"
import { SourceStore } from "../../../src/store/knowledge/Sources.ts"
import { Artifacts } from "../../../src/usecases/knowledge/Artifacts.ts"
import { ConnectorSettings } from "../../../src/usecases/knowledge/ConnectorSettings.ts"
import { Sources } from "../../../src/usecases/knowledge/Sources.ts"
import * as Fixtures from "../../Fixtures.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"
import { layerReaders } from "../../readers/Site.ts"
import { layerSettings } from "./ConnectorLayers.ts"
import { addSource, layerIngestOf, sync } from "./IngestHarness.ts"

const live = Sources.Default.pipe(
  Layer.provide(Artifacts.Default),
  Layer.provideMerge(layerSettings(builtIn)),
  Layer.provideMerge(
    Layer.mergeAll(
      ArtifactRows.Default,
      SourceStore.Default,
      IngestionJobStore.Default,
      EntitlementStore.Default,
      IdempotencyKeyStore.Default,
      QueueTable.layerTable,
      layerMemory
    )
  )
)

const zendesk = (settings: Readonly<Record<string, unknown>>) => ({
  type: "CONNECTOR" as const,
  name: "Help",
  autoSync: false,
  config: { reader: "zendesk", settings }
})

const settings = {
  url: "https://shop.zendesk.com",
  locale: "de",
  email: "agent@example.com",
  token: "t0p-secret"
}

eachEngineLive("A source of a registered reader", (it) => {
  it.effect("reports the errors of its settings with their paths", () =>
    Effect.gen(function* () {
      yield* reset
      const scope = yield* Fixtures.agent()
      const sources = yield* Sources
      const error = yield* Effect.flip(sources.add(scope, zendesk({ url: "no address", other: 1 })))
      const { issues } = Object(Object(error).details)
      expect(
        issues.map(({ path }: { readonly path: ReadonlyArray<string> }) => path.join(".")).toSorted()
      ).toEqual(["config.settings.locale", "config.settings.other", "config.settings.url"])
      const unknown = yield* Effect.flip(
        sources.add(scope, { ...zendesk({}), config: { reader: "gopher", settings: {} } })
      )
      expect(Object(Object(unknown).details).issues).toMatchObject([{ path: ["config", "reader"] }])
    }).pipe(Effect.provide(live))
  )

  it.effect("stores its secrets sealed and separately, and uses them only for their address", () =>
    Effect.gen(function* () {
      yield* reset
      const scope = yield* Fixtures.agent()
      const sources = yield* Sources
      const connectors = yield* ConnectorSettings
      const sql = yield* SqlClient.SqlClient
      const { source } = yield* sources.add(scope, zendesk(settings))
      const { token: _, ...shown } = settings
      expect(source.config["settings"]).toEqual(shown)
      const rows =
        yield* sql`select config::text as config, sealed from sources join source_secrets on source_id = id`
      expect(rows).toHaveLength(1)
      expect(JSON.stringify(rows)).not.toContain(settings.token)
      const secrets = Effect.map(connectors.open(scope, source.id), (opened) =>
        Option.getOrNull(opened.secrets)
      )
      expect(yield* secrets).toEqual({ token: settings.token })
      const patch = (next: Readonly<Record<string, unknown>>) =>
        sources.patch(scope, source.id, { config: { reader: "zendesk", settings: next } })
      yield* patch({ ...shown, locale: "en-us" })
      expect(yield* secrets).toEqual({ token: settings.token })
      yield* patch({ ...shown, token: "another" })
      expect(yield* secrets).toEqual({ token: "another" })
      yield* patch({ ...shown, url: "https://thief.example" })
      expect(yield* secrets).toEqual({})
      const other = yield* Effect.flip(
        sources.patch(scope, source.id, {
          config: { reader: "feed", settings: { url: "https://a.example" } }
        })
      )
      expect(other._tag).toBe("VALIDATION_ERROR")
      yield* sources.remove(scope, source.id)
      expect(yield* sql`select 1 from source_secrets`).toEqual([])
    }).pipe(Effect.provide(live))
  )
})

it("Omitted settings of built-in readers have these values", () => {
  expect(feed.defaults?.({ url: "https://example.com/feed" })).toEqual({ keep: "all" })
  expect(repository.defaults?.({ url: "https://github.com/acme/docs" })).toEqual({
    provider: "github",
    include: [],
    exclude: []
  })
  expect(repository.defaults?.({ url: "https://git.example.com/acme/docs" })).toEqual({
    include: [],
    exclude: []
  })
})

eachEngineLive("A pass of a reader", (it) => {
  it.scoped("continues from the last cursor only if the settings are the same, with defaults", () =>
    Effect.gen(function* () {
      yield* reset
      const scope = yield* Fixtures.agent()
      const cursors: Array<number | null> = []
      const news = sourceReader({
        name: "news",
        title: { en: "News" },
        description: { en: "The latest articles." },
        settings: Schema.Struct({ keep: optional(Schema.Literal("all", "listed")) }),
        defaults: () => ({ keep: "all" as const }),
        cursor: Schema.Int,
        position: Schema.Null,
        step: (_, { cursor }) =>
          Effect.sync(() => {
            cursors.push(cursor)
            const uri = String(cursors.length)
            const content = `These are the words of ${uri}, and they are long enough to be read.`
            return {
              documents: [{ uri, title: uri, format: "markdown" as const, content }],
              next: { done: cursors.length, complete: false }
            }
          })
      })
      const readers = Layer.succeed(SourceReaders, registered([news]))
      yield* Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const store = yield* SourceStore
        const id = yield* addSource(scope, "CONNECTOR", { reader: "news", settings: {} })
        for (const settings of [{}, { keep: "all" }, {}, { keep: "listed" }]) {
          yield* store.update(scope, id, { config: { reader: "news", settings } })
          yield* sync(scope, id)
        }
        expect(cursors).toEqual([null, 1, 2, null])
        // As an earlier version left it.
        yield* store.update(scope, id, { config: { reader: "news", settings: { keep: "all" } } })
        yield* sync(scope, id)
        const hash = (value: unknown) => createHash("sha256").update(JSON.stringify(value)).digest("hex")
        yield* sql`
          update source_readings set digest = ${hash([1, "news", [["keep", "all"]], []])}
          where source_id = ${id}`
        yield* sync(scope, id)
        expect(cursors.slice(4)).toEqual([null, 5])
      }).pipe(Effect.provide(layerIngestOf(layerSettings(readers))))
    }).pipe(Effect.provide(layerReaders))
  )

  it.scoped("stores no address that would run a script where it is linked to", () =>
    Effect.gen(function* () {
      yield* reset
      const scope = yield* Fixtures.agent()
      const given = [
        "https://example.com/a",
        "tag:example.com,2026:a",
        "javascript:alert(1)",
        " jAva\tscript:alert(2)",
        "data:text/html,<script>alert(3)</script>",
        "VBScript:alert(4)"
      ]
      const revisions: Array<string | undefined> = []
      const news = sourceReader({
        name: "news",
        title: { en: "News" },
        description: { en: "The latest articles." },
        settings: Schema.Struct({}),
        cursor: Schema.Int,
        position: Schema.Null,
        step: (_, { known }) =>
          Effect.sync(() => {
            revisions.push(...given.map(known))
            const documents = given.map((uri) => ({
              uri,
              title: "News",
              format: "markdown" as const,
              content: `These are the words of ${encodeURIComponent(uri)}, and they are long enough to be read.`,
              revision: "1"
            }))
            const isFirst = revisions.length === given.length
            return {
              documents: isFirst ? documents : [],
              unchanged: isFirst ? [] : given,
              next: { done: 1, complete: true }
            }
          })
      })
      const readers = Layer.succeed(SourceReaders, registered([news]))
      yield* Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const id = yield* addSource(scope, "CONNECTOR", { reader: "news", settings: {} })
        const uris = Effect.map(
          sql<{ readonly uri: string }>`select distinct uri from documents where source_id = ${id}`,
          (rows) => rows.map(({ uri }) => uri).toSorted()
        )
        const expected = given.map((uri, index) => (index < 2 ? uri : `unsafe:${uri}`)).toSorted()
        yield* sync(scope, id)
        expect(yield* uris).toEqual(expected)
        yield* sync(scope, id)
        expect(yield* uris).toEqual(expected)
        expect(revisions.slice(given.length)).toEqual(given.map(() => "1"))
      }).pipe(Effect.provide(layerIngestOf(layerSettings(readers))))
    }).pipe(Effect.provide(layerReaders))
  )
})
