/** Random labels, scopes and filters against the rule written plainly: a search never finds what it may not read. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Embedder } from "../../../src/capabilities/Embedder.ts"
import { VectorSearch } from "../../../src/capabilities/VectorSearch.ts"
import type { RetrieveFilter } from "../../../src/domain/knowledge/Chunk.ts"
import type { SourceId } from "../../../src/domain/Ids.ts"
import type { SourceScope } from "../../../src/domain/knowledge/SourceScope.ts"
import * as Fixtures from "../../Fixtures.ts"
import { makeHashing } from "../../HashingEmbedder.ts"
import type { eachEngineLive } from "../../TestDatabase.ts"
import { reset } from "../../TestDatabase.ts"
import { known, page, stores } from "./Knowledge.ts"
import type { SearchLayer } from "./Suite.ts"

/** Requests on each engine; a long run takes 100,000. */
const requests = Number(process.env["SPOKE_SCOPE_REQUESTS"] ?? 750)
const seed = Number(process.env["SPOKE_SCOPE_SEED"] ?? 1)
/** After so many requests some sources get other labels. */
const relabelled = 50
/** Requests at once: those of the same instant share statements, each under a scope of its own. */
const together = 8
const sourceCount = 24
/** Words that all pages have, so that long requests are searched twice: the second time with words of what was found. */
const shared =
  "The night shift copies every table of the archive to a second building and reads it back before the morning. " +
  "Whoever misses a file asks the operator for the tape of that week, who signs for it and brings it to the desk in the " +
  "hall. Tapes older than a year are wiped, numbered again and put back on the shelf of the cellar."
const short = "backup"
const long = "Who may ask the operator for a backup tape of last week when a file of the archive is missing?"

const vocabulary = ["a", "b", "c", "d", "ä ö", "a'\"\\", "A", "[]", "0", "null"]
const types = ["URL", "FILE", "TEXT"] as const

interface Held {
  readonly id: SourceId
  readonly type: (typeof types)[number]
  readonly product: string
  labels: ReadonlyArray<string>
}

const meets = ({ labels, metadata, sourceIds, sourceTypes }: RetrieveFilter, source: Held): boolean =>
  (sourceIds === undefined || sourceIds.includes(source.id)) &&
  (sourceTypes === undefined || sourceTypes.some((type) => type === source.type)) &&
  (metadata === undefined || Object.values(metadata).every((value) => value === source.product)) &&
  (labels === undefined ||
    source.labels.length === 0 ||
    source.labels.some((label) => labels.includes(label)))

export const scopeSuite = (name: string, layer: SearchLayer, each: typeof eachEngineLive): void => {
  const live = Layer.provideMerge(Layer.merge(layer, stores), Layer.succeed(Embedder, makeHashing()))

  each(`The scope of a search ${name}`, (it) => {
    it.scoped(
      `leaves exactly the sources that the rule leaves, in ${requests} random requests (seed ${seed})`,
      () =>
        Effect.gen(function* () {
          yield* reset
          const sql = yield* SqlClient.SqlClient
          const { search } = yield* VectorSearch
          const agent = yield* Fixtures.agent()
          let state = seed
          const roll = (sides: number) => {
            state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
            return Math.floor((state / 2 ** 32) * sides)
          }
          const some = <A>(all: ReadonlyArray<A>, most: number) =>
            Array.from({ length: roll(most + 1) }, () => all[roll(all.length)]).filter(
              (one) => one !== undefined
            )
          const maybe = <A>(make: () => A): A | undefined => (roll(2) === 0 ? undefined : make())
          const label = (source: Held) => {
            source.labels = roll(4) === 0 ? [] : [...new Set(some(vocabulary, 3))]
            return sql`update sources set labels = ${JSON.stringify(source.labels)}::jsonb where id = ${source.id}`
          }

          const sources: Array<Held> = []
          for (let at = 0; at < sourceCount; at++) {
            const id = yield* known(agent, [
              page(`backup of number ${at}. ${shared}`),
              page(`backup again ${at}. ${shared}`)
            ])
            const source: Held = { id, type: types[at % 3] ?? "URL", product: `p${at % 4}`, labels: [] }
            const config = JSON.stringify({ metadata: { product: source.product } })
            yield* sql`update sources set type = ${source.type}, config = ${config}::jsonb where id = ${id}`
            sources.push(source)
          }
          // Another agent's, and one that is never asked for: neither is ever found.
          const foreign = yield* known(yield* Fixtures.agent(), [page(`backup of another. ${shared}`)])
          const ids = [...sources.map(({ id }) => id), foreign]

          /** What a request asks for, by the dice. */
          const draw = (request: number) => {
            const scope = maybe((): SourceScope => {
              const sourceIds = maybe(() => some(ids, 12))
              return { labels: some(vocabulary, 4), ...(sourceIds === undefined ? {} : { sourceIds }) }
            })
            const filter = maybe((): RetrieveFilter => {
              const sourceIds = maybe(() => some(ids, 12))
              const sourceTypes = maybe(() => some(types, 2))
              const product = maybe(() => `p${roll(5)}`)
              const labels = maybe(() => some(vocabulary, 4))
              return {
                ...(sourceIds === undefined ? {} : { sourceIds }),
                ...(sourceTypes === undefined ? {} : { sourceTypes }),
                ...(product === undefined ? {} : { metadata: { product } }),
                ...(labels === undefined ? {} : { labels })
              }
            })
            return { request, scope, filter }
          }
          let checked = 0
          for (let first = 0; first < requests; first += relabelled) {
            // The embedded database leaves the runner no time to be told that this process lives.
            yield* Effect.sleep("1 millis")
            yield* Effect.forEach(some(sources, 8), label)
            const drawn = Array.from({ length: Math.min(relabelled, requests - first) }, (_, at) =>
              draw(first + at)
            )
            yield* Effect.forEach(
              drawn,
              ({ filter, request, scope }) =>
                Effect.gen(function* () {
                  const { chunks } = yield* search(
                    { ...agent, sourceScope: scope ?? null },
                    { text: request % 2 === 0 ? short : long, topK: 100, minScore: 0, filter }
                  )
                  const found = [...new Set(chunks.map(({ sourceId }) => sourceId))].toSorted()
                  const expected = sources
                    .filter(
                      (source) => (scope === undefined || meets(scope, source)) && meets(filter ?? {}, source)
                    )
                    .map(({ id }) => id)
                    .toSorted()
                  expect({ request, scope, filter, found }).toEqual({
                    request,
                    scope,
                    filter,
                    found: expected
                  })
                  checked++
                }),
              { concurrency: together, discard: true }
            )
          }
          expect(checked).toBe(requests)
        }).pipe(Effect.provide(live)),
      1_800_000
    )
  })
}
