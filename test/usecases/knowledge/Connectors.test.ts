import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as QueueTable from "../../../src/capabilities/JobQueue/Table.ts"
import { layerMemory } from "../../../src/capabilities/ArtifactStore.ts"
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
import { layerSettings } from "./ConnectorLayers.ts"

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
  it.effect("names what is wrong with its settings by their places", () =>
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

  it.effect("keeps its secrets sealed, apart, and for the address that they were given for", () =>
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
