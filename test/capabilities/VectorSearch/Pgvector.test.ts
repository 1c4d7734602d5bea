import { layerPgvector } from "../../../src/capabilities/VectorSearch/Pgvector.ts"
import { onEmbeddedPgvector } from "../../servers/PgvectorServer.ts"
import { vectorSearchSuite } from "./Suite.ts"

vectorSearchSuite(
  "by pgvector",
  layerPgvector({ maxBytes: 1e8, wordsFirstAbove: Infinity }),
  onEmbeddedPgvector
)
