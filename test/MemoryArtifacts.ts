/** Artifacts in memory. The queue of their removals is in the database. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { ArtifactStore, ArtifactStoreError, layerMemory } from "../src/capabilities/ArtifactStore.ts"
import { layerTable } from "../src/capabilities/JobQueue/Table.ts"
import { ArtifactRows } from "../src/store/knowledge/ArtifactRows.ts"
import { Artifacts } from "../src/usecases/knowledge/Artifacts.ts"

export const layerArtifacts = Artifacts.Default.pipe(
  Layer.provideMerge(Layer.mergeAll(ArtifactRows.Default, layerMemory, layerTable))
)

let bucketAnswers = true

/** Artifacts in memory, as in a bucket that does not answer {@link duringOutage}. */
export const bucket = Layer.effect(
  ArtifactStore,
  Effect.map(ArtifactStore, (store) => ({
    ...store,
    get: (...request: Parameters<typeof store.get>) =>
      Effect.suspend(() =>
        bucketAnswers ? store.get(...request) : Effect.fail(new ArtifactStoreError({ message: "no answer" }))
      )
  }))
).pipe(Layer.provide(layerMemory))

export const duringOutage = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => (bucketAnswers = false)),
    () => effect,
    () => Effect.sync(() => (bucketAnswers = true))
  )
