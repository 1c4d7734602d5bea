/**
 * Random labels, scopes and filters through whole turns: what a turn may not read is in no prompt, part, citation, message,
 * event or stored passage of it, and in no replay after the labels have changed.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import * as Stream from "effect/Stream"
import { layerInProcess } from "../../../src/capabilities/VectorSearch/InProcess.ts"
import { layerPgvector } from "../../../src/capabilities/VectorSearch/Pgvector.ts"
import { layerWithFeedback } from "../../../src/capabilities/VectorSearch/WithFeedback.ts"
import type { VectorSearch } from "../../../src/capabilities/VectorSearch.ts"
import type { Embedder } from "../../../src/capabilities/Embedder.ts"
import type { ReadScope } from "../../../src/domain/accounts/Access.ts"
import type { RetrieveFilter } from "../../../src/domain/knowledge/Chunk.ts"
import type { SourceScope } from "../../../src/domain/knowledge/SourceScope.ts"
import type { RunId, SourceId } from "../../../src/domain/Ids.ts"
import { AgentStore } from "../../../src/store/agents/Agents.ts"
import { RecordedRunStore } from "../../../src/store/chat/RecordedRuns.ts"
import { ChatTurn } from "../../../src/usecases/chat/ChatTurn.ts"
import { Replays } from "../../../src/usecases/chat/replay/Replays.ts"
import { known, page, stores } from "../../capabilities/VectorSearch/Knowledge.ts"
import * as Fixtures from "../../Fixtures.ts"
import { layerHashing } from "../../HashingEmbedder.ts"
import { onEmbeddedPgvector } from "../../servers/PgvectorServer.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"
import { type Reply, request, says, Script, turnLayer } from "./TurnHarness.ts"

/** Turns on each engine; each is replayed once. */
const turns = Number(process.env["SPOKE_SCOPE_TURNS"] ?? 60)
const seed = Number(process.env["SPOKE_SCOPE_SEED"] ?? 1)
/** Turns between two changes of labels, all of them at once. */
const together = 10
const sourceCount = 12
const vocabulary = ["a", "b", "c", "d", "A", "[]"]
/** Words that all pages have, so that long messages are searched twice: the second time with words of what was found. */
const shared =
  "The night shift copies every table of the archive to a second building and reads it back before the morning. " +
  "Whoever misses a file asks the operator for the tape of that week, who signs for it and brings it to the desk in the " +
  "hall. Tapes older than a year are wiped, numbered again and put back on the shelf of the cellar."

interface Held {
  readonly id: SourceId
  labels: ReadonlyArray<string>
}

/** Asks for a second search, then cites every source that it was given. */
const citesAll: Reply = (asked) => {
  const { prompt, tools } = asked
  const searched = prompt.content.some(({ role }) => role === "tool")
  if (!searched && tools.length > 0) {
    return Stream.make(
      {
        _tag: "ToolCall",
        id: "call_1",
        name: "search_sources",
        input: { query: "restore" },
        rawInput: ""
      } as const,
      { _tag: "Finish", reason: "tool-calls", inputTokens: 1, outputTokens: 1 } as const
    )
  }
  const numbers = new Set(
    Array.from(JSON.stringify(prompt).matchAll(/number=\\+"(\d+)\\+"/gu), ([, found]) => Number(found))
  )
  return says(...Array.from(numbers, (number) => `There is a backup [${number}]. `), "Done.")(asked)
}

/** The numbers of the sources that a text tells of. */
const toldBy = (text: string) => [
  ...new Set(Array.from(text.matchAll(/secret-(\d+)/gu), ([, found]) => Number(found)))
]

type Engine = Layer.Layer<VectorSearch, never, SqlClient.SqlClient | Embedder>

const scopedTurns = (name: string, engine: Engine, each: typeof eachEngineLive): void => {
  const knowledge = engine.pipe(Layer.provideMerge(layerHashing()))
  const process = Replays.Default.pipe(
    Layer.provideMerge(turnLayer("60 seconds", true, knowledge)),
    Layer.provideMerge(Layer.mergeAll(AgentStore.Default, RecordedRunStore.Default, stores))
  )

  each(`The scope of a turn ${name}`, (it) => {
    it.scoped(
      `holds in prompts, parts, citations, messages, traces, passages and replays of ${turns} random turns (seed ${seed})`,
      () =>
        Effect.gen(function* () {
          yield* reset
          const sql = yield* SqlClient.SqlClient
          const chat = yield* ChatTurn
          const replays = yield* Replays
          const { reply, requests } = yield* Script
          yield* Ref.set(reply, citesAll)
          const agent = yield* Fixtures.agent()
          yield* sql`update agents set max_searches = 2 where id = ${agent.agentId}`
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
            const told = `secret-${at}`
            const pages = [
              page(`A backup is made by ${told}. ${shared}`, told),
              page(`To restore ask ${told}.`, told)
            ]
            sources.push({ id: yield* known(agent, pages, told), labels: [] })
          }
          const ids = sources.map(({ id }) => id)
          const meets = (
            { labels, sourceIds }: Pick<RetrieveFilter, "labels" | "sourceIds">,
            source: Held
          ): boolean =>
            (sourceIds === undefined || sourceIds.includes(source.id)) &&
            (labels === undefined ||
              source.labels.length === 0 ||
              source.labels.some((one) => labels.includes(one)))

          const draw = (turn: number) => {
            const sourceIds = maybe(() => some(ids, 8))
            const sourceScope = maybe((): SourceScope => ({
              labels: some(vocabulary, 3),
              ...(sourceIds === undefined ? {} : { sourceIds })
            }))
            const filtered = maybe(() => some(ids, 8))
            const labels = maybe(() => some(vocabulary, 3))
            const filter = {
              ...(filtered === undefined ? {} : { sourceIds: filtered }),
              ...(labels === undefined ? {} : { labels })
            }
            const scope: ReadScope = { ...agent, sourceScope: sourceScope ?? null }
            const more =
              turn % 2 === 0
                ? ""
                : " Who asks the operator for the tape of the archive when a file is missing?"
            return { message: `How is a backup made in case-${turn}-?${more}`, scope, filter }
          }
          type Drawn = ReturnType<typeof draw>

          /** Numbers of the sources that the turn may read now. */
          const readable = ({ filter, scope: { sourceScope } }: Drawn) =>
            sources.flatMap((source, at) =>
              (sourceScope === null || meets(sourceScope, source)) && meets(filter, source) ? [at] : []
            )

          /** What the model was sent for the turn. */
          const prompts = ({ message }: Drawn) =>
            Effect.map(Ref.get(requests), (all) =>
              JSON.stringify(all.filter(({ question }) => question === message).map(({ prompt }) => prompt))
            )

          const storedOf = (runId: RunId) =>
            Effect.map(
              sql`
                select
                  (select json_agg(e) from agent_run_events e where e.run_id = r.id) as events,
                  (select json_agg(m) from messages m where m.conversation_id = r.conversation_id) as messages,
                  (select json_agg(p) from run_passages u join passages p on p.tenant_id = u.tenant_id and p.hash = u.hash
                    where u.run_id = r.id) as passages
                from agent_runs r where r.id = ${runId}`,
              (rows) => JSON.stringify(rows)
            )

          const count = { turns: 0, replays: 0, cited: 0 }
          for (let first = 0; first < turns; first += together) {
            yield* Effect.forEach(some(sources, 6), label)
            yield* Ref.set(requests, [])
            const drawn = Array.from({ length: Math.min(together, turns - first) }, (_, at) =>
              draw(first + at)
            )
            const run = yield* Effect.forEach(
              drawn,
              (one) =>
                Effect.gen(function* () {
                  const { filter, message, scope } = one
                  const turn = yield* chat.start(scope, request({ message, filter }), "api")
                  const { runId } = turn
                  if (runId === null) return yield* Effect.dieMessage("The turn is not stored.")
                  const parts = Chunk.toReadonlyArray(yield* Stream.runCollect(turn.parts))
                  const result = parts.flatMap((part) => (part._tag === "Done" ? [part.result] : []))[0]
                  const may = readable(one)
                  const seen = [JSON.stringify(parts), yield* prompts(one), yield* storedOf(runId)]
                  for (const text of seen) {
                    expect(toldBy(text).filter((number) => !may.includes(number))).toEqual([])
                    expect(toldBy(text).length > 0).toBe(may.length > 0)
                  }
                  const cited = result?.citations.map(({ sourceId }) => ids.indexOf(sourceId)) ?? []
                  expect(cited.filter((number) => !may.includes(number))).toEqual([])
                  expect(cited.length > 0).toBe(may.length > 0)
                  count.turns++
                  count.cited += cited.length
                  return { ...one, runId }
                }),
              { concurrency: together }
            )
            // What was read then may have become somebody else's by now.
            yield* Effect.forEach(some(sources, 8), label)
            yield* Ref.set(requests, [])
            for (const { runId, ...one } of run) {
              const [replayed] = yield* replays.run(one.scope, { runIds: [runId] }, () => Effect.void)
              const may = readable(one)
              for (const text of [JSON.stringify(replayed?.after), yield* prompts(one)])
                expect(toldBy(text).filter((number) => !may.includes(number))).toEqual([])
              expect((replayed?.after?.citations.length ?? 0) > 0).toBe(may.length > 0)
              count.replays++
              const other: ReadScope = { ...agent, sourceScope: { labels: ["somebody else"] } }
              const asked = yield* Effect.either(replays.run(other, { runIds: [runId] }, () => Effect.void))
              expect(Either.isLeft(asked)).toBe(true)
            }
          }
          expect(count).toMatchObject({ turns, replays: turns })
          expect(count.cited).toBeGreaterThan(turns)
        }).pipe(Effect.provide(process)),
      1_800_000
    )
  })
}

const withFeedback = (engine: Engine) => Layer.provide(layerWithFeedback, engine)
const inProcess = layerInProcess({ maxBytes: 1e8, wordsFirstAbove: Infinity })
const pgvector = layerPgvector({ maxBytes: 1e8, heldUpTo: 0 })
const held = layerPgvector({ maxBytes: 1e8, often: 1 })

scopedTurns("in process", withFeedback(inProcess), eachEngineLive)
scopedTurns("by pgvector", withFeedback(pgvector), onEmbeddedPgvector)
scopedTurns("by pgvector, held in memory", withFeedback(held), onEmbeddedPgvector)
