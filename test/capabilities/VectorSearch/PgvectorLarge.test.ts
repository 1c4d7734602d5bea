import { onEmbeddedPgvector } from "../../servers/PgvectorServer.ts"
import { pgvectorSuite } from "./PgvectorSuite.ts"

pgvectorSuite(onEmbeddedPgvector, { exactUpTo: 1_500, large: 3_000 })
