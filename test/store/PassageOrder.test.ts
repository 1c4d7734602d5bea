/** How many rows are read to find the next passages to compare. All chunks of one reading have the same version. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Statement from "@effect/sql/Statement"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
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

eachEngineLive("The next passages to compare", (it) => {
  it.scoped("are the only ones that are read, also if many chunks have the same version", () =>
    Effect.gen(function* () {
      yield* reset
      const sql = yield* SqlClient.SqlClient
      const { agentId, tenantId } = yield* Fixtures.agent()
      yield* sql`
        insert into sources (id, tenant_id, agent_id, type, name, config, live_generation)
        values ('src_order', ${tenantId}, ${agentId}, 'URL', 'Source', '{}', 1)`
      yield* sql`
        insert into documents (id, tenant_id, agent_id, source_id, generation, uri, title, content_hash)
        values ('doc_order', ${tenantId}, ${agentId}, 'src_order', 1, 'https://example.com/1', 'Page', '')`
      yield* sql`
        insert into chunks (id, tenant_id, agent_id, source_id, generation, document_id, ordinal, content, content_hash, tsv, length, version)
        select 'chk_' || lpad(n::text, 6, '0'), ${tenantId}, ${agentId}, 'src_order', 1, 'doc_order', n, 'So it is.', '', '', 3, 1
        from generate_series(1, ${chunks}::int) n`
      yield* sql`analyze chunks`
      const seen: Array<readonly [sql: string, parameters: ReadonlyArray<unknown>]> = []
      const store = yield* FindingStore
      const at = (chunkId: string) => ({ tenantId, agentId, version: "1", chunkId, staleIsDue: false })
      const found = yield* store.next(at("chk_001500"), 5).pipe(
        Statement.withTransformer((statement) =>
          Effect.sync(() => {
            seen.push(statement.compile())
            return statement
          })
        )
      )
      expect(found.map(({ id }) => id)).toEqual([1, 2, 3, 4, 5].map((n) => `chk_00150${n}`))
      const [[text, parameters] = ["", []]] = seen
      const explained = yield* sql.unsafe(`explain (analyze, format json) ${text}`, parameters)
      const [
        {
          "QUERY PLAN": [{ Plan: plan }]
        }
      ] = decodePlan(explained)
      expect(rowsRead(plan as Node)).toBe(5)
    }).pipe(Effect.provide(FindingStore.Default))
  )
})
