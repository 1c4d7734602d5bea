/** What a tenant's data takes is counted completely, in batches, and for each tenant alone. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { ReadScope } from "../../../src/domain/accounts/Access.ts"
import { ArtifactStore, layerMemory } from "../../../src/capabilities/ArtifactStore.ts"
import { StorageStore } from "../../../src/store/billing/Storage.ts"
import { StorageCount } from "../../../src/usecases/billing/StorageCount.ts"
import * as Fixtures from "../../Fixtures.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"

const live = StorageCount.Default.pipe(
  Layer.provideMerge(StorageStore.Default),
  Layer.provideMerge(layerMemory)
)

/** Text that no compression shortens. */
const filler = (bytes: number) =>
  Effect.map(SqlClient.SqlClient, (sql) => {
    const parts = Math.ceil(bytes / 32)
    return sql`(select left(string_agg(md5(${bytes}::text || n::text || random()::text), ''), ${bytes}::int) from generate_series(1, ${parts}::int) n)`
  })

/** A conversation with so many messages of a thousand bytes, and a run with an event of two thousand. */
const conversation = ({ agentId, tenantId }: ReadScope, messages: number) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* sql`insert into end_users (id, tenant_id) values ('usr_1', ${tenantId})`
    yield* sql`insert into conversations (id, tenant_id, agent_id, end_user_id, channel)
      values ('cnv_1', ${tenantId}, ${agentId}, 'usr_1', 'api')`
    yield* sql`
      insert into messages (id, tenant_id, conversation_id, agent_id, position, role, content)
      select 'msg_' || lpad(n::text, 6, '0'), ${tenantId}, 'cnv_1', ${agentId}, n, 'user', text.content
      from (select ${yield* filler(1_000)} as content offset 0) text, generate_series(1, ${messages}::int) n`
    yield* sql`
      insert into agent_runs (id, tenant_id, agent_id, conversation_id, instance_id, user_message_id, user_message, period_start, status)
      values ('run_1', ${tenantId}, ${agentId}, 'cnv_1', 'i', 'msg_1', '', now(), 'complete')`
    yield* sql`
      insert into agent_run_events (tenant_id, run_id, sequence, type, status, label, payload, at)
      select ${tenantId}, 'run_1', 1, 'run.started', 'running', '', to_jsonb(${yield* filler(2_000)}), now()`
    yield* sql`
      insert into passages (tenant_id, hash, source_name, title, heading, url, content)
      select ${tenantId}, sha256(n::text::bytea), 'S', '', '', '', ${yield* filler(500)} from generate_series(1, 6) n`
  })

/** A source with a file, a document and so many chunks of 700 bytes, each with a vector of 400. */
const source = ({ agentId, tenantId }: ReadScope, chunks: number, file: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* sql`insert into sources (id, tenant_id, agent_id, type, name, config)
      values ('src_1', ${tenantId}, ${agentId}, 'FILE', 'F', ${JSON.stringify({ artifact: file })}::jsonb)`
    yield* sql`insert into documents (id, tenant_id, agent_id, source_id, generation, uri, title, content_hash)
      values ('doc_1', ${tenantId}, ${agentId}, 'src_1', 1, '', '', '')`
    yield* sql`
      insert into chunks (id, tenant_id, agent_id, source_id, generation, document_id, ordinal, content, content_hash, tsv, length)
      select 'chk_' || lpad(n::text, 6, '0'), ${tenantId}, ${agentId}, 'src_1', 1, 'doc_1', n, text.content, '', '', 1
      from (select ${yield* filler(700)} as content offset 0) text, generate_series(1, ${chunks}::int) n`
    yield* sql`
      insert into chunk_embeddings (tenant_id, chunk_id, profile, agent_id, version, embedding)
      select tenant_id, id, 'p', agent_id, 1, decode(repeat('5c', 400), 'hex') from chunks where tenant_id = ${tenantId}`
  })

const counted = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { sweep } = yield* StorageCount
  yield* sql`update tenant_storage set due_at = now() - interval '1 second'`
  while (yield* sweep) continue
})

/** Within so much of what the texts alone take. */
const about = (found: number | undefined, expected: number) => {
  expect(found).toBeGreaterThanOrEqual(expected)
  expect(found).toBeLessThan(expected * 1.15 + 200)
}

eachEngineLive("The storage of a tenant", (it) => {
  it.effect("is unknown before the first count, and 0 without data", () =>
    Effect.gen(function* () {
      yield* reset
      const scope = yield* Fixtures.agent()
      const { find } = yield* StorageStore
      expect(yield* find(scope)).toBe(null)
      yield* counted
      expect((yield* find(scope))?.bytes).toEqual({
        messages: 0,
        runs: 0,
        knowledge: 0,
        vectors: 0,
        originals: 0
      })
    }).pipe(Effect.provide(live))
  )

  it.effect("counts every row once in any number of batches, and no other tenant's", () =>
    Effect.gen(function* () {
      yield* reset
      const sql = yield* SqlClient.SqlClient
      const artifacts = yield* ArtifactStore
      const large = yield* Fixtures.agent()
      const small = yield* Fixtures.agent()
      const ref = yield* artifacts.put(new Uint8Array(12_345))
      const own = yield* artifacts.put(new Uint8Array(7))
      // One of a version that stored no size.
      yield* sql`insert into artifacts (ref, bytes) values (${ref}, null), (${own}, 7)`
      yield* conversation(large, 5_500)
      yield* source(large, 5_200, ref)
      yield* conversation(small, 2)
      yield* source(small, 3, own)
      yield* sql`insert into conversation_artifacts (tenant_id, conversation_id, ref) values (${large.tenantId}, 'cnv_1', ${ref})`
      yield* counted
      const { find } = yield* StorageStore
      const found = (yield* find(large))?.bytes
      about(found?.messages, 5_500 * 1_000)
      about(found?.runs, 2_000 + 6 * 500)
      about(found?.knowledge, 5_200 * 700)
      about(found?.vectors, 5_200 * 400)
      expect(found?.originals).toBe(12_345)
      const other = (yield* find(small))?.bytes
      about(other?.messages, 2 * 1_000)
      about(other?.knowledge, 3 * 700)
      expect(other?.originals).toBe(7)
    }).pipe(Effect.provide(live))
  )

  it.effect("is counted again a day later, and continues an interrupted count", () =>
    Effect.gen(function* () {
      yield* reset
      const sql = yield* SqlClient.SqlClient
      const scope = yield* Fixtures.agent()
      yield* conversation(scope, 6_000)
      const store = yield* StorageStore
      yield* store.include
      const first = yield* store.claim
      if (first._tag === "None") return yield* Effect.dieMessage("No tenant was due.")
      yield* store.advance(first.value)
      // As by another process.
      const second = yield* store.claim
      expect(second).toMatchObject({ value: { list: 0, seen: "msg_005000" } })
      expect(yield* store.find(scope)).toBe(null)
      if (second._tag === "Some") yield* store.advance(second.value)
      yield* counted
      about((yield* store.find(scope))?.bytes.messages, 6_000 * 1_000)
      expect(yield* store.claim).toMatchObject({ _tag: "None" })
      yield* sql`delete from conversations`
      yield* counted
      expect((yield* store.find(scope))?.bytes).toMatchObject({ messages: 0 })
    }).pipe(Effect.provide(live))
  )
})
