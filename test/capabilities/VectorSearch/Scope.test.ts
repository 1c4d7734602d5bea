import { layerInProcess } from "../../../src/capabilities/VectorSearch/InProcess.ts"
import { layerPgvector } from "../../../src/capabilities/VectorSearch/Pgvector.ts"
import { onEmbeddedPgvector } from "../../servers/PgvectorServer.ts"
import { eachEngineLive } from "../../TestDatabase.ts"
import { scopeSuite } from "./ScopeSuite.ts"

scopeSuite("in process", layerInProcess({ maxBytes: 1e8, wordsFirstAbove: Infinity }), eachEngineLive)
scopeSuite("by pgvector", layerPgvector({ maxBytes: 1e8, heldUpTo: 0 }), onEmbeddedPgvector)
scopeSuite("by pgvector, held in memory", layerPgvector({ maxBytes: 1e8, often: 1 }), onEmbeddedPgvector)
