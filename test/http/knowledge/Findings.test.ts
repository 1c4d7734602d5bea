/** Passages that contradict or repeat each other or are stale, over HTTP, as a background fiber finds them. */
import * as HttpApi from "@effect/platform/HttpApi"
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { Embedder } from "../../../src/capabilities/Embedder.ts"
import * as SqlAudit from "../../../src/capabilities/AuditLog/Sql.ts"
import * as DerivedKeys from "../../../src/capabilities/SecretBox/DerivedKeys.ts"
import type { AgentScope } from "../../../src/domain/accounts/Access.ts"
import { ChunkId, minRunIdAt } from "../../../src/domain/Ids.ts"
import { FindingsApi } from "../../../src/http/hosted/knowledge/FindingsApi.ts"
import { FindingsHandlers } from "../../../src/http/hosted/knowledge/FindingsHandlers.ts"
import { AgentStore } from "../../../src/store/agents/Agents.ts"
import { ContentStore } from "../../../src/store/knowledge/Contents.ts"
import { FindingStore } from "../../../src/store/knowledge/Findings.ts"
import { SourceStore } from "../../../src/store/knowledge/Sources.ts"
import { AuditTrail } from "../../../src/usecases/accounts/AuditTrail.ts"
import { Findings } from "../../../src/usecases/knowledge/Findings.ts"
import { ingest, page, source, stores } from "../../capabilities/VectorSearch/Knowledge.ts"
import * as Fixtures from "../../Fixtures.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"
import { makeHashing } from "../../HashingEmbedder.ts"
import { signedIn } from "../SignedIn.ts"
import * as TestServer from "../TestServer.ts"

const { current, session } = signedIn()

const server = TestServer.layer(
  HttpApiBuilder.api(HttpApi.make("spoke").add(FindingsApi)).pipe(
    Layer.provide(FindingsHandlers),
    Layer.provide(session)
  )
).pipe(
  Layer.provideMerge(Layer.merge(Findings.Default, AuditTrail.Default)),
  Layer.provideMerge(
    Layer.mergeAll(
      AgentStore.Default,
      FindingStore.Default,
      SourceStore.Default,
      stores,
      Layer.succeed(Embedder, makeHashing()),
      SqlAudit.layerSql,
      DerivedKeys.layer([Redacted.make("the master secret of these tests, 32 bytes")])
    )
  )
)

const onFreshData = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.zipRight(reset, Effect.provide(effect, server))

const call = (method: string, path: string) =>
  Effect.flatMap(TestServer.TestServer, (test) => test.call(method, path))
const data = (path: string, method = "GET") =>
  Effect.map(call(method, path), (answer) => TestServer.expectData(answer))

const agent = Effect.gen(function* () {
  const scope = yield* Fixtures.agent()
  current.user = { ...current.user, tenantId: scope.tenantId }
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    insert into sources (id, tenant_id, agent_id, type, name, config, live_generation)
    values (${`src_${scope.agentId}`}, ${scope.tenantId}, ${scope.agentId}, 'FILE', 'Handbook', '{}', 1)`
  return scope
})

let version = 0

/** Live documents of one chunk each, as an ingestion leaves them; returns the ids of the chunks. */
const pages = (scope: AgentScope, texts: Readonly<Record<string, string>>, daysOld = 0) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    version++
    const { agentId, tenantId } = scope
    const source = `src_${agentId}`
    const names = Object.keys(texts)
    for (const name of names) {
      yield* sql`
        insert into documents (id, tenant_id, agent_id, source_id, generation, uri, title, content_hash, index_format, created_at)
        values (${`doc_${name}`}, ${tenantId}, ${agentId}, ${source}, 1, ${`https://example.test/${name}`}, ${name}, '', 2,
          now() - make_interval(days => ${daysOld}::int))`
      yield* sql`
        insert into chunks (id, tenant_id, agent_id, source_id, generation, document_id, ordinal, heading, content, content_hash,
          tsv, length, english, version)
        values (${`chk_${name}`}, ${tenantId}, ${agentId}, ${source}, 1, ${`doc_${name}`}, 0, '', ${texts[name] ?? ""}, '', '', 1,
          true, ${version})`
    }
    yield* sql`
      insert into agent_stats as s (tenant_id, agent_id, version, chunk_count) values (${tenantId}, ${agentId}, ${version}, ${names.length})
      on conflict (tenant_id, agent_id) do update set version = excluded.version, chunk_count = s.chunk_count + excluded.chunk_count`
    return names.map((name) => `chk_${name}`)
  })

const sweep = Effect.flatMap(Findings, (findings) => findings.sweep)

/** A reply that cites the page, rated. */
const rated = (scope: AgentScope, page: string, rating: 1 | -1 | null) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const { agentId, tenantId } = scope
    const now = yield* DateTime.now
    const id = `${minRunIdAt(now).slice(0, 14)}${String(version++).padStart(16, "0")}`
    yield* sql`insert into end_users (id, tenant_id) values (${`usr_${id}`}, ${tenantId})`
    yield* sql`
      insert into conversations (id, tenant_id, agent_id, end_user_id, channel)
      values (${`cnv_${id}`}, ${tenantId}, ${agentId}, ${`usr_${id}`}, 'api')`
    yield* sql`
      insert into messages (id, tenant_id, conversation_id, agent_id, position, role, author, content, citations)
      values (${`msg_${id}`}, ${tenantId}, ${`cnv_${id}`}, ${agentId}, 1, 'assistant', 'agent', 'So. [1]', '[{"index": 1}]')`
    yield* sql`
      insert into agent_runs (id, tenant_id, agent_id, conversation_id, ticket, instance_id, user_message_id, user_message,
        period_start, epoch, status, started_at, ends_by, message_id, rating)
      values (${id}, ${tenantId}, ${agentId}, ${`cnv_${id}`}, 1, 'ins_1', ${`msg_${id}`}, 'Why?', now(), 0, 'complete', now(), now(),
        ${`msg_${id}`}, ${rating})`
    yield* sql`
      insert into passages (tenant_id, hash, source_name, title, heading, url, content)
      values (${tenantId}, sha256(${page}::bytea), 'Handbook', ${page}, '', '', 'Twelve words') on conflict do nothing`
    yield* sql`
      insert into run_passages (tenant_id, run_id, number, hash, source_id, document_id, chunk_id, score)
      values (${tenantId}, ${id}, 1, sha256(${page}::bytea), ${`src_${agentId}`}, ${`doc_${page}`}, ${`chk_${page}`}, 1)`
  })

const returns = {
  terms: "# Terms\n\nCustomers can return goods within 30 days. The box has to be intact.",
  faq: "Good to know. Customers can return the goods within 14 days."
}

eachEngineLive("A finding about passages", (it) => {
  it.scoped("is listed with both passages and the reason, is deleted with them, and can be dismissed", () =>
    Effect.gen(function* () {
      const scope = yield* agent
      const list = `/api/agents/${scope.agentId}/findings`
      expect(yield* data(list)).toEqual({
        findings: [],
        counts: { contradiction: 0, duplicate: 0, stale: 0 },
        isComplete: true,
        nextCursor: null
      })
      yield* pages(scope, {
        ...returns,
        copy: "The tower was built of red brick. A staircase of 210 steps leads to the upper gallery.",
        other: "The tower was built of red brick. A staircase of 210 steps leads to the upper gallery.",
        own: "Nothing of this is said elsewhere in the handbook."
      })
      expect((yield* data(list)).isComplete).toBe(false)
      yield* sweep
      const page = yield* data(list)
      expect(page).toMatchObject({
        counts: { contradiction: 1, duplicate: 1, stale: 0 },
        isComplete: true,
        nextCursor: null
      })
      const [contradiction, duplicate, ...others] = page.findings
      expect(others).toEqual([])
      expect(contradiction).toMatchObject({ kind: "contradiction", dismissedAt: null })
      expect(contradiction.reasons).toMatchObject([{ kind: "number" }])
      expect(
        Object.fromEntries(
          contradiction.passages.map(({ said, title }: { title: string; said: string }) => [title, said])
        )
      ).toEqual({
        terms: "Customers can return goods within 30 days.",
        faq: "Customers can return the goods within 14 days."
      })
      expect(contradiction.passages[0]).toMatchObject({
        sourceName: "Handbook",
        url: expect.stringContaining("https://example.test/")
      })
      expect(duplicate).toMatchObject({ kind: "duplicate", reasons: [{ kind: "same", share: 1 }] })
      expect((yield* data(`${list}?kind=duplicate`)).findings).toHaveLength(1)
      const first = yield* data(`${list}?limit=1`)
      const rest = yield* data(`${list}?limit=1&cursor=${encodeURIComponent(first.nextCursor)}`)
      expect([...first.findings, ...rest.findings]).toEqual(page.findings)
      const { finding } = yield* data(`${list}/${duplicate.id}/dismiss`, "POST")
      expect(finding.dismissedAt).not.toBe(null)
      expect((yield* data(list)).findings).toHaveLength(1)
      expect((yield* data(`${list}?dismissed=true`)).findings).toMatchObject([{ id: duplicate.id }])
      expect((yield* data(list)).counts).toEqual({ contradiction: 1, duplicate: 0, stale: 0 })
      const restored = yield* data(`${list}/${duplicate.id}/restore`, "POST")
      expect(restored.finding.dismissedAt).toBe(null)
      expect((yield* data(list)).findings).toEqual(page.findings)
      expect((yield* data(`${list}?dismissed=true`)).counts.duplicate).toBe(0)
      const sql = yield* SqlClient.SqlClient
      yield* sql`delete from documents where tenant_id = ${scope.tenantId} and id = 'doc_faq'`
      expect((yield* data(list)).findings).toMatchObject([{ id: duplicate.id }])
      expect(yield* sql`select 1 from passage_statements where chunk_id = 'chk_faq'`).toEqual([])
    }).pipe(onFreshData)
  )

  it.scoped("is found once between earlier and later passages, and is not visible to others", () =>
    Effect.gen(function* () {
      const other = yield* agent
      const scope = yield* agent
      const list = `/api/agents/${scope.agentId}/findings`
      yield* pages(scope, { terms: returns.terms })
      yield* pages(other, { elsewhere: returns.faq })
      yield* sweep
      expect((yield* data(list)).findings).toEqual([])
      yield* pages(scope, { faq: returns.faq })
      yield* sweep
      yield* sweep
      expect((yield* data(list)).findings).toHaveLength(1)
      current.user = { ...current.user, tenantId: other.tenantId }
      TestServer.expectError(yield* call("GET", list), 404, "NOT_FOUND")
      TestServer.expectError(yield* call("POST", `${list}/fnd_1/dismiss`), 404, "NOT_FOUND")
      TestServer.expectError(yield* call("POST", `${list}/fnd_1/restore`), 404, "NOT_FOUND")
      TestServer.expectError(
        yield* call("GET", `/api/agents/${scope.agentId}/source-values`),
        404,
        "NOT_FOUND"
      )
    }).pipe(onFreshData)
  )

  it.scoped("is found later if there were too many findings, and each pair of passages once", () =>
    Effect.gen(function* () {
      const scope = yield* agent
      const list = `/api/agents/${scope.agentId}/findings`
      const sql = yield* SqlClient.SqlClient
      yield* pages(scope, { lamp: "The lamp has a cable.", stool: "The stool has three legs." })
      yield* sql`
        insert into passage_findings (tenant_id, id, agent_id, kind, chunk_id, other_chunk_id, reasons, weight)
        select ${scope.tenantId}, 'fnd_' || n, ${scope.agentId}, 'contradiction', 'chk_lamp', 'chk_stool', '[]', 1
        from generate_series(1, 500) n`
      yield* pages(scope, {
        one: "Customers can return the goods within 14 days. Customers can return all goods within 7 days.",
        other: "Customers can return goods within 30 days."
      })
      yield* sweep
      const found = sql`select id from passage_findings where id not in (select 'fnd_' || n from generate_series(1, 500) n)`
      expect(yield* found).toEqual([])
      expect((yield* data(list)).isComplete).toBe(true)
      yield* data(`${list}/fnd_1/dismiss`, "POST")
      expect((yield* data(list)).isComplete).toBe(false)
      yield* sweep
      expect(yield* found).toHaveLength(1)
      expect((yield* data(list)).counts.contradiction).toBe(500)
      // The search starts again, and finds the same.
      yield* data(`${list}/fnd_2/dismiss`, "POST")
      expect((yield* data(list)).isComplete).toBe(false)
      yield* sweep
      expect(yield* found).toHaveLength(1)
      // There was room for all that is found.
      yield* data(`${list}/fnd_3/dismiss`, "POST")
      expect((yield* data(list)).isComplete).toBe(true)
    }).pipe(onFreshData)
  )

  it.scoped.each(["excluded", "read anew", "removed with their source"] as const)(
    "is found later if there were too many findings, and passages of them are %s",
    (how) =>
      Effect.gen(function* () {
        const scope = yield* agent
        const sql = yield* SqlClient.SqlClient
        const read = (name: string, texts: ReadonlyArray<string>) =>
          Effect.gen(function* () {
            const id = yield* source(scope, name)
            yield* ingest(
              scope,
              id,
              texts.map((text) => page(text))
            )
            const chunks = yield* sql<{ readonly id: ChunkId }>`
              select id from chunks where tenant_id = ${scope.tenantId} and source_id = ${id} order by id`
            return { id, chunks: chunks.map((chunk) => chunk.id) }
          })
        const lamp = yield* read("Lamp", ["The lamp has a cable."])
        const chair = yield* read("Chair", ["The chair is made of wood."])
        const { chunks } = yield* read("House", [
          "The stool has three legs.",
          "Customers can return the goods within 14 days.",
          "Customers can return goods within 30 days."
        ])
        yield* sql`
          insert into passage_findings (tenant_id, id, agent_id, kind, chunk_id, other_chunk_id, reasons, weight)
          select ${scope.tenantId}, 'fnd_' || n, ${scope.agentId}, 'contradiction',
            case when n = 1 then ${lamp.chunks[0] ?? ""} else ${chunks[1] ?? ""} end, ${chunks[0] ?? ""}, '[]', 1
          from generate_series(1, 500) n`
        const found = sql`select id from passage_findings where id not in (select 'fnd_' || n from generate_series(1, 500) n)`
        const position = sql`select version::int as version from passage_scans where agent_id = ${scope.agentId}`
        yield* sweep
        expect(yield* found).toEqual([])
        const take = ({ chunks: [chunk], id }: Effect.Effect.Success<ReturnType<typeof read>>) => {
          if (how === "read anew") return ingest(scope, id, [page("It is gone.")])
          if (how === "excluded")
            return Effect.flatMap(ContentStore, ({ exclude }) =>
              exclude(scope, id, chunk ?? ChunkId.make("chk_none"))
            )
          return Effect.flatMap(SourceStore, ({ remove }) => remove(scope, id))
        }
        // Passages without findings make no room.
        yield* take(chair)
        expect(yield* position).not.toEqual([{ version: 0 }])
        yield* sweep
        expect(yield* found).toEqual([])
        yield* take(lamp)
        expect(yield* position).toEqual([{ version: 0 }])
        yield* sweep
        expect(yield* found).toHaveLength(1)
      }).pipe(onFreshData)
  )

  it.scoped("is not made for a form that is filled in for each of many items", () =>
    Effect.gen(function* () {
      const scope = yield* agent
      const form = (place: number) => [
        `lamp${place}`,
        `The cable of the lamp has a length of ${place + 1} metres.`
      ]
      yield* pages(scope, Object.fromEntries(Array.from({ length: 9 }, (_, place) => form(place))))
      yield* sweep
      const { findings } = yield* data(`/api/agents/${scope.agentId}/findings?limit=100`)
      // Of the first few it cannot be told yet.
      expect(findings.length).toBeLessThanOrEqual(6)
    }).pipe(onFreshData)
  )

  it.scoped("is searched for tenants in turn, in batches, and continues where it stopped", () =>
    Effect.gen(function* () {
      const big = yield* agent
      const many = Array.from({ length: 45 }, (_, place) => [
        `p${String(place).padStart(2, "0")}`,
        `Page number ${place}.`
      ])
      yield* pages(big, Object.fromEntries(many))
      const small = yield* agent
      yield* pages(small, { only: "A single page of text." })
      const store = yield* FindingStore
      const sql = yield* SqlClient.SqlClient
      const findings = yield* Findings
      const due = yield* store.due(10)
      expect(due.map(({ tenantId }) => tenantId).toSorted()).toEqual(
        [big.tenantId, small.tenantId].toSorted()
      )
      // Whoever was claimed last comes last.
      const [first = big, second] = due
      yield* sql.withTransaction(store.claim(first))
      expect((yield* store.due(10)).map(({ tenantId }) => tenantId)).toEqual([
        second?.tenantId,
        first.tenantId
      ])
      yield* findings.sweep
      expect((yield* data(`/api/agents/${small.agentId}/findings`)).isComplete).toBe(true)
      current.user = { ...current.user, tenantId: big.tenantId }
      expect((yield* data(`/api/agents/${big.agentId}/findings`)).isComplete).toBe(true)
      expect(yield* findings.sweep).toBe(false)
    }).pipe(onFreshData)
  )

  it.scoped("is found for other agents while the passages of one agent cannot be compared", () =>
    Effect.gen(function* () {
      const broken = yield* agent
      yield* pages(broken, { poison: "The tower was built of red brick in 1910." })
      const scope = yield* agent
      yield* pages(scope, returns)
      const sql = yield* SqlClient.SqlClient
      yield* sql.unsafe(`
        create function refuse_statements() returns trigger language plpgsql as $$ begin raise 'cannot be stored'; end $$`)
      yield* sql.unsafe(`
        create trigger refuse_statements before insert on passage_statements for each row
        when (new.chunk_id = 'chk_poison') execute function refuse_statements()`)
      yield* Effect.addFinalizer(() => Effect.orDie(sql.unsafe("drop function refuse_statements cascade")))
      expect(yield* sweep).toBe(false)
      expect((yield* data(`/api/agents/${scope.agentId}/findings`)).findings).toHaveLength(1)
      current.user = { ...current.user, tenantId: broken.tenantId }
      expect((yield* data(`/api/agents/${broken.agentId}/findings`)).isComplete).toBe(false)
    }).pipe(onFreshData)
  )

  it.scoped("reports a page that has not changed for long and whose answers are rated down", () =>
    Effect.gen(function* () {
      const scope = yield* agent
      yield* pages(scope, { fresh: "The fresh page tells of tea.", loved: "The loved page tells of tea." })
      yield* pages(
        scope,
        { old: "The old page tells of coffee.", praised: "The praised page tells of milk." },
        400
      )
      for (const page of ["fresh", "old"])
        for (let times = 0; times < 3; times++) yield* rated(scope, page, -1)
      yield* rated(scope, "praised", -1)
      yield* rated(scope, "praised", 1)
      yield* sweep
      const { findings } = yield* data(`/api/agents/${scope.agentId}/findings?kind=stale`)
      expect(findings).toMatchObject([
        {
          kind: "stale",
          reasons: [{ kind: "unchanged", days: 400, thumbsUp: 0, thumbsDown: 3 }],
          passages: [{ title: "old", said: null }]
        }
      ])
    }).pipe(onFreshData)
  )

  it.scoped("comes with the value of each source in a month", () =>
    Effect.gen(function* () {
      const scope = yield* agent
      yield* pages(scope, { tea: "The page tells of tea." })
      yield* rated(scope, "tea", 1)
      yield* rated(scope, "tea", -1)
      yield* rated(scope, "tea", null)
      const values = `/api/agents/${scope.agentId}/source-values`
      const page = yield* data(values)
      expect(page.sources).toEqual([
        {
          sourceId: `src_${scope.agentId}`,
          name: "Handbook",
          shown: 3,
          cited: 3,
          helpful: 1,
          notHelpful: 1,
          tokens: 9,
          documents: 1,
          chunks: 1,
          storedBytes: 22
        }
      ])
      expect((yield* data(`${values}?month=2020-01`)).sources).toMatchObject([
        { shown: 0, tokens: 0, chunks: 1 }
      ])
      TestServer.expectError(yield* call("GET", `${values}?month=2020-13`), 400, "VALIDATION_ERROR")
    }).pipe(onFreshData)
  )
})
