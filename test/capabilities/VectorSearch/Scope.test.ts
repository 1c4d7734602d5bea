import { layerInProcess } from "../../../src/capabilities/VectorSearch/InProcess.ts"
import * as Layer from "effect/Layer"
import { layerPgvector } from "../../../src/capabilities/VectorSearch/Pgvector.ts"
import { layerWithFeedback } from "../../../src/capabilities/VectorSearch/WithFeedback.ts"
import { onEmbeddedPgvector, onPgvectorServer } from "../../servers/PgvectorServer.ts"
import { eachEngineLive } from "../../TestDatabase.ts"
import { scopeSuite } from "./ScopeSuite.ts"

const inProcess = layerInProcess({ maxBytes: 1e8, wordsFirstAbove: Infinity })
const pgvector = layerPgvector({ maxBytes: 1e8, heldUpTo: 0 })
const held = layerPgvector({ maxBytes: 1e8, often: 1 })

scopeSuite("in process", Layer.provide(layerWithFeedback, inProcess), eachEngineLive)
scopeSuite("by pgvector", Layer.provide(layerWithFeedback, pgvector), onEmbeddedPgvector)
scopeSuite("by pgvector", Layer.provide(layerWithFeedback, pgvector), onPgvectorServer)
scopeSuite("by pgvector, held in memory", Layer.provide(layerWithFeedback, held), onEmbeddedPgvector)
