/** How many rows are read to find passages to compare. All chunks of one reading have the same version. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Statement from "@effect/sql/Statement"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { ChunkId, DocumentId } from "../../src/domain/Ids.ts"
import { FindingStore } from "../../src/store/knowledge/Findings.ts"
import * as Fixtures from "../Fixtures.ts"
import { eachEngineLive, reset } from "../TestDatabase.ts"

const chunks = 3_000

/** A node of a plan, with the number of rows that it has read. */
interface Node {
  readonly "Relation Name"?: string
  readonly "Actual Rows": number
  readonly "Rows Removed by Filter"?: number
  readonly "Actual Loops": number
  readonly Plans?: ReadonlyArray<Node>
}

const rowsRead = (node: Node): number =>
  (node["Relation Name"] === "chunks"
    ? (node["Actual Rows"] + (node["Rows Removed by Filter"] ?? 0)) * node["Actual Loops"]
    : 0) + (node.Plans ?? []).reduce((sum, inner) => sum + rowsRead(inner), 0)

const decodePlan = Schema.decodeUnknownSync(
  Schema.Tuple(Schema.Struct({ "QUERY PLAN": Schema.Tuple(Schema.Struct({ Plan: Schema.Unknown })) }))
)

/** An agent with {@link chunks} chunks of two documents in turns. */
const agentWithChunks = Effect.gen(function* () {
  yield* reset
  const sql = yield* SqlClient.SqlClient
  const { agentId, tenantId } = yield* Fixtures.agent()
  yield* sql`
    insert into sources (id, tenant_id, agent_id, type, name, config, live_generation)
    values ('src_order', ${tenantId}, ${agentId}, 'URL', 'Source', '{}', 1)`
  yield* sql`
    insert into documents (id, tenant_id, agent_id, source_id, generation, uri, title, content_hash)
    select 'doc_' || n, ${tenantId}, ${agentId}, 'src_order', 1, 'https://example.com/' || n, 'Page', ''
    from generate_series(0, 1) n`
  yield* sql`
    insert into chunks (id, tenant_id, agent_id, source_id, generation, document_id, ordinal, content, content_hash, tsv, length, version)
    select 'chk_' || lpad(n::text, 6, '0'), ${tenantId}, ${agentId}, 'src_order', 1, 'doc_' || n % 2, n, 'So it is.', '', '', 3, 1
    from generate_series(1, ${chunks}::int) n`
  return { agentId, tenantId }
})

/** The result of `effect`, and the number of rows of chunks that its statement has read. */
const withRowsRead = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* sql`analyze`
    const seen: Array<readonly [sql: string, parameters: ReadonlyArray<unknown>]> = []
    const found = yield* effect.pipe(
      Statement.withTransformer((statement) =>
        Effect.sync(() => {
          seen.push(statement.compile())
          return statement
        })
      )
    )
    const [[text, parameters] = ["", []]] = seen
    const explained = yield* sql.unsafe(`explain (analyze, format json) ${text}`, parameters)
    const [
      {
        "QUERY PLAN": [{ Plan: plan }]
      }
    ] = decodePlan(explained)
    return { found, read: rowsRead(plan as Node) }
  })

eachEngineLive("Passages to compare", (it) => {
  it.scoped("are the only ones that are read, also if many chunks have the same version", () =>
    Effect.gen(function* () {
      const scope = yield* agentWithChunks
      const store = yield* FindingStore
      const at = { ...scope, version: "1", chunkId: "chk_001500", staleIsDue: false }
      const { found, read } = yield* withRowsRead(store.next(at, 5))
      expect(found.map(({ id }) => id)).toEqual([1, 2, 3, 4, 5].map((n) => `chk_00150${n}`))
      expect(read).toBe(5)
    }).pipe(Effect.provide(FindingStore.Default))
  )

  it.scoped("are compared with those that have statements in common, and no others are read", () =>
    Effect.gen(function* () {
      const { agentId, tenantId } = yield* agentWithChunks
      const sql = yield* SqlClient.SqlClient
      // Each key belongs to 25 chunks, and chunks with the same key are of either document.
      yield* sql`
        insert into passage_statements (tenant_id, agent_id, anchor, chunk_id, place)
        select ${tenantId}, ${agentId}, n / 25, 'chk_' || lpad(n::text, 6, '0'), 0 from generate_series(1, ${chunks}::int) n`
      const store = yield* FindingStore
      const chunk = { id: ChunkId.make("chk_002000"), documentId: DocumentId.make("doc_0"), version: "1" }
      const { found, read } = yield* withRowsRead(
        store.neighbours({ agentId, tenantId }, chunk, [76, 77, 78, 79, 80], 30)
      )
      expect(found).toHaveLength(30)
      expect(found.every(({ documentId }) => documentId === "doc_1")).toBe(true)
      expect(read).toBeLessThanOrEqual(5 * 25)
    }).pipe(Effect.provide(FindingStore.Default))
  )
})
