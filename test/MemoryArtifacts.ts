/** Artifacts in memory. The queue of their removals is in the database. */
import * as Layer from "effect/Layer"
import { layerMemory } from "../src/capabilities/ArtifactStore.ts"
import { layerTable } from "../src/capabilities/JobQueue/Table.ts"
import { ArtifactRows } from "../src/store/knowledge/ArtifactRows.ts"
import { Artifacts } from "../src/usecases/knowledge/Artifacts.ts"

export const layerArtifacts = Artifacts.Default.pipe(
  Layer.provideMerge(Layer.mergeAll(ArtifactRows.Default, layerMemory, layerTable))
)
