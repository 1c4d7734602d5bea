import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Embedder } from "../../../src/capabilities/Embedder.ts"
import type { SourceId } from "../../../src/domain/Ids.ts"
import { type Answer, layerReaders, serveSite } from "../../readers/Site.ts"
import * as Fixtures from "../../Fixtures.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"
import { addSource, layerIngest, sync } from "./IngestHarness.ts"

const live = Layer.merge(layerIngest, layerReaders)

const section = (name: string, words: string) => `## ${name}\n\n${`${words} `.repeat(60).trim()}`
const document = (title: string, sections: ReadonlyArray<string>): Answer => ({
  headers: { "content-type": "text/markdown" },
  body: `# ${title}\n\n${sections.join("\n\n")}\n`
})

const opening = section("Opening", "The museum opens at nine")
const prices = section("Prices", "A ticket costs eleven francs")
const garden = section("Garden", "The garden has forty roses")
const cafe = section("Café", "Soup is served at noon")

/** Gives each chunk that lacks one a vector that says what it was made of; how many there were. */
const embed = (source: SourceId) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const { profile } = yield* Embedder
    const added = yield* sql`
      insert into chunk_embeddings (tenant_id, chunk_id, profile, agent_id, version, embedding)
      select c.tenant_id, c.id, ${profile}, c.agent_id, 1, decode(md5(d.title || c.heading || c.content), 'hex')
      from chunks c join documents d on d.id = c.document_id
      where c.source_id = ${source} and c.version is not null
        and not exists (select 1 from chunk_embeddings e where e.chunk_id = c.id and e.profile = ${profile})
      returning chunk_id`
    const wrong = yield* sql`
      select c.content from chunks c
      join documents d on d.id = c.document_id join chunk_embeddings e on e.chunk_id = c.id
      where c.source_id = ${source} and encode(e.embedding, 'hex') <> md5(d.title || c.heading || c.content)`
    expect(wrong).toEqual([])
    return added.length
  })

eachEngineLive("Chunks whose text has not changed", (it) => {
  it.scoped(
    "keep their vectors when other chunks of the document change; a new title changes all",
    () =>
      Effect.gen(function* () {
        yield* reset
        const sql = yield* SqlClient.SqlClient
        const scope = yield* Fixtures.agent()
        let answer = document("Museum", [opening, prices, garden])
        const site = yield* serveSite(() => () => answer)
        const source = yield* addSource(scope, "FILE", { fileUrl: `${site.origin}/guide.md` })
        const chunks = Effect.map(
          sql<{ readonly count: number; readonly waiting: number }>`
            select (select count(*)::int from chunks where source_id = ${source}) as count,
              (select count(*)::int from queue_jobs where queue = 'embedding') as waiting`,
          ([row]) => row
        )
        const read = (next: Answer, options?: { readonly force: boolean }) =>
          Effect.suspend(() => {
            answer = next
            return Effect.zipRight(sync(scope, source, options), embed(source))
          })
        const all = yield* read(answer)
        expect(all).toBeGreaterThanOrEqual(6)
        expect((yield* chunks)?.count).toBe(all)
        const waiting = (yield* chunks)?.waiting

        // In another order, and with one section more: that one alone is embedded.
        const more = yield* read(document("Museum", [garden, cafe, opening, prices]))
        expect(more).toBeGreaterThan(0)
        expect(more).toBeLessThan(all)
        expect((yield* chunks)?.count).toBe(all + more)

        // Without a section nothing is, and nothing is queued for it.
        const before = (yield* chunks)?.waiting
        expect(yield* read(document("Museum", [garden, opening]))).toBe(0)
        expect((yield* chunks)?.waiting).toBe(before)
        expect(waiting).toBe(1)

        // What is embedded begins with the title.
        const left = (yield* chunks)?.count
        expect(yield* read(document("Gallery", [garden, opening]))).toBe(left)
        expect(yield* read(answer)).toBe(0)
        expect(yield* read(answer, { force: true })).toBe(left)
      }).pipe(Effect.provide(live)),
    60_000
  )
})
