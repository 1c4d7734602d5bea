import { layerInProcess } from "../../../src/capabilities/VectorSearch/InProcess.ts"
import { layerPgvector } from "../../../src/capabilities/VectorSearch/Pgvector.ts"
import { onPgvectorServer } from "../../servers/PgvectorServer.ts"
import { pgvectorSuite } from "./PgvectorSuite.ts"
import { vectorSearchSuite } from "./Suite.ts"

vectorSearchSuite(
  "by pgvector",
  layerPgvector({ maxBytes: 1e8, wordsFirstAbove: Infinity }),
  onPgvectorServer
)
vectorSearchSuite(
  "in process beside pgvector",
  layerInProcess({ maxBytes: 1e8, wordsFirstAbove: Infinity }),
  onPgvectorServer
)
pgvectorSuite(onPgvectorServer, { exactUpTo: 2_000, large: 6_000 })
