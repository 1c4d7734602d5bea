/** A source as content over HTTP: its documents and passages, what cites them, and which of them no search finds. */
import * as HttpApi from "@effect/platform/HttpApi"
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as SqlAudit from "../../../src/capabilities/AuditLog/Sql.ts"
import { Embedder } from "../../../src/capabilities/Embedder.ts"
import * as QueueTable from "../../../src/capabilities/JobQueue/Table.ts"
import * as DerivedKeys from "../../../src/capabilities/SecretBox/DerivedKeys.ts"
import { layerInProcess } from "../../../src/capabilities/VectorSearch/InProcess.ts"
import type { ReadScope } from "../../../src/domain/accounts/Access.ts"
import { ContentsApi } from "../../../src/http/hosted/knowledge/ContentsApi.ts"
import { ContentsHandlers } from "../../../src/http/hosted/knowledge/ContentsHandlers.ts"
import { AgentStore } from "../../../src/store/agents/Agents.ts"
import { SourceStore } from "../../../src/store/knowledge/Sources.ts"
import { AuditTrail } from "../../../src/usecases/accounts/AuditTrail.ts"
import { Contents } from "../../../src/usecases/knowledge/Contents.ts"
import { SourceScopes } from "../../../src/usecases/knowledge/SourceScopes.ts"
import * as Fixtures from "../../Fixtures.ts"
import { makeHashing } from "../../HashingEmbedder.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"
import { embed, ingest, known, page, stores } from "../../capabilities/VectorSearch/Knowledge.ts"
import { signedIn } from "../SignedIn.ts"
import * as TestServer from "../TestServer.ts"

const { current, session } = signedIn()

const live = TestServer.layer(
  HttpApiBuilder.api(HttpApi.make("spoke").add(ContentsApi)).pipe(
    Layer.provide(ContentsHandlers),
    Layer.provide(session)
  )
).pipe(
  Layer.provideMerge(Layer.mergeAll(Contents.Default, AuditTrail.Default, SourceScopes.Default)),
  Layer.provideMerge(
    Layer.mergeAll(
      layerInProcess({ maxBytes: 1e8 }),
      AgentStore.Default,
      SourceStore.Default,
      stores,
      QueueTable.layerTable,
      SqlAudit.layerSql,
      DerivedKeys.layer([Redacted.make("the master secret of these tests, 32 bytes")])
    )
  ),
  Layer.provideMerge(Layer.succeed(Embedder, makeHashing()))
)

const call = (method: string, path: string, body?: unknown) =>
  Effect.flatMap(TestServer.TestServer, (test) =>
    Effect.map(test.call(method, path, body === undefined ? {} : { body }), ({ json, status }) => ({
      status,
      body: json
    }))
  )

const found = (scope: ReadScope, query: string) =>
  Effect.map(call("POST", `/api/agents/${scope.agentId}/passages/search`, { query }), ({ body }) =>
    body.data.passages.map(({ text }: { readonly text: string }) => text).toSorted()
  )

const handbook = {
  title: "Handbook",
  chunks: [
    { heading: "Opening", content: "backup we open at nine" },
    { heading: "Prices", content: "backup a chain costs forty euros" },
    { heading: "Prices", content: "backup a saddle costs ninety euros" }
  ]
}

/** A complete turn of a customer whose reply cites `text` of the page. */
const citing = (
  { agentId, tenantId }: ReadScope,
  id: string,
  place: Readonly<Record<"sourceId" | "chunkId" | "documentId" | "heading" | "text", string>>
) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const user = `usr_${id}`
    yield* sql`insert into end_users (id, tenant_id) values (${user}, ${tenantId})`
    yield* sql`
      insert into conversations (id, tenant_id, agent_id, end_user_id, channel)
      values (${`cnv_${id}`}, ${tenantId}, ${agentId}, ${user}, 'api')`
    yield* sql`
      insert into messages (id, tenant_id, conversation_id, agent_id, position, role, author, content, citations)
      values (${`msg_${id}`}, ${tenantId}, ${`cnv_${id}`}, ${agentId}, 1, 'assistant', 'agent', 'So. [1]', '[{"index": 1}]')`
    yield* sql`
      insert into agent_runs (id, tenant_id, agent_id, conversation_id, ticket, instance_id, user_message_id, user_message,
        period_start, epoch, status, started_at, ends_by, message_id)
      values (${`run_${id}`}, ${tenantId}, ${agentId}, ${`cnv_${id}`}, 1, 'ins_1', ${`msg_${id}`}, ${`What is ${id}?`}, now(), 0,
        'complete', now(), now(), ${`msg_${id}`})`
    yield* sql`
      insert into passages (tenant_id, hash, source_name, title, heading, url, content)
      values (${tenantId}, ${Buffer.from(id)}, 'Source', 'Handbook', ${place.heading}, 'https://example.com/0', ${place.text})`
    yield* sql`
      insert into run_passages (tenant_id, run_id, number, hash, source_id, document_id, chunk_id, score)
      values (${tenantId}, ${`run_${id}`}, 1, ${Buffer.from(id)}, ${place.sourceId}, ${place.documentId}, ${place.chunkId}, 0.5)`
  })

eachEngineLive("A source as content", (it) => {
  const onFreshData = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.zipRight(reset, Effect.provide(effect, live))

  const shop = Effect.gen(function* () {
    const scope = yield* Fixtures.agent()
    current.user = { ...current.user, tenantId: scope.tenantId, role: "admin" }
    const id = yield* known(scope, [handbook, page("backup of nothing 100%", "Other")])
    const { body } = yield* call("GET", `/api/sources/${id}/documents`)
    return { scope, id, documents: body.data.documents, path: `/api/sources/${id}` }
  })

  it.scoped(
    "lists documents in pages and by part of their title or address, and shows one in reading order",
    () =>
      onFreshData(
        Effect.gen(function* () {
          const { documents, id, path, scope } = yield* shop
          expect(
            documents.map(({ excluded, passages, title, uri }: Record<string, unknown>) => [
              title,
              uri,
              passages,
              excluded
            ])
          ).toEqual([
            ["Handbook", "https://example.com/0", 3, 0],
            ["Other", "https://example.com/1", 1, 0]
          ])
          const one = (yield* call("GET", `${path}/documents?limit=1`)).body.data
          const two = (yield* call("GET", `${path}/documents?limit=1&cursor=${one.nextCursor}`)).body.data
          expect([one.documents, two.documents, two.nextCursor]).toEqual([
            [documents[0]],
            [documents[1]],
            null
          ])
          for (const [q, titles] of [
            ["HANDB", ["Handbook"]],
            ["example.com/1", ["Other"]],
            ["%", []]
          ] as const) {
            const { body } = yield* call("GET", `${path}/documents?q=${encodeURIComponent(q)}`)
            expect(body.data.documents.map(({ title }: { title: string }) => title)).toEqual(titles)
          }
          const read = (query: string) =>
            Effect.map(call("GET", `${path}/documents/${documents[0].id}${query}`), ({ body }) => body.data)
          const first = yield* read("?limit=2")
          const rest = yield* read(`?limit=2&cursor=${first.nextCursor}`)
          expect(
            [...first.passages, ...rest.passages].map(({ heading, ordinal, text }) => [
              ordinal,
              heading,
              text
            ])
          ).toEqual(handbook.chunks.map(({ content, heading }, ordinal) => [ordinal, heading, content]))
          expect(rest.nextCursor).toBeNull()

          const other = yield* Fixtures.agent()
          const elsewhere = yield* known(other, [page("backup")])
          for (const away of [`/api/sources/${elsewhere}/documents`, `${path}/documents/doc_none`]) {
            expect((yield* call("GET", away)).status).toBe(404)
          }
          expect((yield* call("GET", `/api/sources/${id}/documents?limit=1&cursor=abc`)).status).toBe(400)
          current.user = { ...current.user, tenantId: other.tenantId }
          expect((yield* call("GET", `${path}/documents/${documents[0].id}`)).status).toBe(404)
          const stranger = yield* call("POST", `/api/agents/${scope.agentId}/passages/search`, { query: "x" })
          expect(stranger.status).toBe(404)
        })
      )
  )

  it.scoped("excludes a passage from search until it is restored, also after a sync, and audits it", () =>
    onFreshData(
      Effect.gen(function* () {
        const { documents, id, path, scope } = yield* shop
        const sql = yield* SqlClient.SqlClient
        const passages = Effect.gen(function* () {
          const listed = (yield* call("GET", `${path}/documents`)).body.data.documents
          return (yield* call("GET", `${path}/documents/${listed[0].id}`)).body.data
        })
        const reader: ReadScope = { ...scope, sourceScope: null }
        const all = yield* found(reader, "backup")
        expect(all.length).toBe(4)
        const [, chain] = (yield* passages).passages
        const excluded = yield* call("POST", `${path}/passages/${chain.id}/exclude`, {})
        expect([excluded.status, excluded.body.data]).toEqual([200, { id: chain.id, excluded: true }])
        const left = all.filter((text: string) => text !== chain.text)
        expect(yield* found(reader, "backup")).toEqual(left)
        expect((yield* passages).document.excluded).toBe(1)

        yield* ingest(scope, id, [handbook, page("backup of nothing 100%", "Other")])
        yield* embed(scope, id)
        expect(yield* found(reader, "backup")).toEqual(left)
        const after = (yield* passages).passages
        expect(after.map(({ excluded: out }: { excluded: boolean }) => out)).toEqual([false, true, false])
        expect(after[1].id).not.toBe(chain.id)
        const old = yield* call("POST", `${path}/passages/${chain.id}/restore`, {})
        expect(old.status).toBe(404)

        const waiting = Effect.map(
          sql`select id from queue_jobs where queue = 'embedding'`,
          (jobs) => jobs.length
        )
        const before = yield* waiting
        expect((yield* call("POST", `${path}/passages/${after[1].id}/restore`, {})).status).toBe(200)
        expect(yield* waiting).toBe(before + 1)
        expect(yield* found(reader, "backup")).toEqual(all)
        const audited = yield* sql<{ readonly action: string; readonly target: string }>`
          select action, target from audit_entries order by id`
        expect(audited).toEqual([
          { action: "passage.exclude", target: chain.id },
          { action: "passage.restore", target: after[1].id }
        ])

        expect(documents.length).toBe(2)
      })
    )
  )

  it.scoped(
    "counts the turns that cite a passage and lists the newest, also after a sync has recreated it",
    () =>
      onFreshData(
        Effect.gen(function* () {
          const { documents, id, path, scope } = yield* shop
          const read = Effect.map(
            call("GET", `${path}/documents/${documents[0].id}`),
            ({ body }) => body.data.passages
          )
          const [opening, chain] = yield* read
          const place = { sourceId: id, documentId: documents[0].id }
          const reader: ReadScope = { ...scope, sourceScope: null }
          yield* citing(reader, "one", { ...place, chunkId: chain.id, heading: "x", text: "x" })
          yield* citing(reader, "two", {
            ...place,
            chunkId: "chk_before",
            heading: "Prices",
            text: `${handbook.chunks[1]?.content}\n\n${handbook.chunks[2]?.content}`
          })
          yield* citing(reader, "three", {
            ...place,
            sourceId: "src_other",
            chunkId: "x",
            heading: "",
            text: ""
          })
          expect((yield* read).map(({ citations }: { citations: number }) => citations)).toEqual([0, 2, 1])
          const { body } = yield* call("GET", `${path}/passages/${chain.id}/citations`)
          expect(
            body.data.turns.map(({ conversationId, question, runId }: Record<string, unknown>) => [
              runId,
              conversationId,
              question
            ])
          ).toEqual([
            ["run_two", "cnv_two", "What is two?"],
            ["run_one", "cnv_one", "What is one?"]
          ])
          expect((yield* call("GET", `${path}/passages/${opening.id}/citations`)).body.data.turns).toEqual([])
          expect((yield* call("GET", `${path}/passages/chk_none/citations`)).status).toBe(404)
        })
      )
  )

  it.scoped(
    "shows how a question finds passages: of all sources or of one, with the parts of each score",
    () =>
      onFreshData(
        Effect.gen(function* () {
          const { id, scope } = yield* shop
          const elsewhere = yield* known(scope, [page("backup elsewhere")], "Elsewhere")
          const search = (body: unknown) => call("POST", `/api/agents/${scope.agentId}/passages/search`, body)
          const { body } = yield* search({ query: "saddle costs", topK: 2 })
          const [best, ...others] = body.data.passages
          expect([best.sourceId, best.title, best.heading, best.text]).toEqual([
            id,
            "Handbook",
            "Prices",
            "backup a saddle costs ninety euros"
          ])
          expect(best.score).toBeGreaterThan(others[0].score)
          expect([best.lexical > 0, best.semantic > 0, others.length, body.data.byWordsAlone]).toEqual([
            true,
            true,
            1,
            false
          ])
          const one = yield* search({ query: "backup", sourceId: elsewhere })
          expect(one.body.data.passages.map(({ sourceName }: { sourceName: string }) => sourceName)).toEqual([
            "Elsewhere"
          ])
          expect((yield* search({ query: " " })).status).toBe(400)
          const away = yield* known(yield* Fixtures.agent(), [page("backup")])
          expect((yield* search({ query: "backup", sourceId: away })).status).toBe(404)
        })
      )
  )

  it.scoped("searches for no personal data where the agent masks it, as a turn does", () =>
    Effect.gen(function* () {
      yield* reset
      const { scope } = yield* Effect.provide(shop, live)
      // Each search is of a new process, because one knows the setting for a second.
      const search = (query: string) =>
        Effect.map(
          call("POST", `/api/agents/${scope.agentId}/passages/search`, { query }),
          ({ body }) => body.data
        ).pipe(Effect.provide(live))
      const own = yield* search("saddle costs")
      expect(own.passages).not.toEqual([])
      expect(yield* search("saddle costs ada@example.org")).not.toEqual(own)
      const sql = yield* SqlClient.SqlClient
      const masking = JSON.stringify({ kinds: ["email"], patterns: [], sources: false, tools: [] })
      yield* sql`update agents set masking = ${masking}::jsonb where id = ${scope.agentId}`
      expect(yield* search("saddle costs ada@example.org")).toEqual(own)
    })
  )
})
