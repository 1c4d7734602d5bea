import { layerPgvector } from "../../../src/capabilities/VectorSearch/Pgvector.ts"
import { onEmbeddedPgvector } from "../../servers/PgvectorServer.ts"
import { pgvectorSuite } from "./PgvectorSuite.ts"
import { vectorSearchSuite } from "./Suite.ts"

vectorSearchSuite(
  "by pgvector",
  layerPgvector({ maxBytes: 1e8, wordsFirstAbove: Infinity }),
  onEmbeddedPgvector
)
pgvectorSuite(onEmbeddedPgvector, { exactUpTo: 1_500, large: 3_000 })
