import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import * as Stream from "effect/Stream"
import { layerMemory } from "../../../src/capabilities/ArtifactStore.ts"
import { layerTable } from "../../../src/capabilities/JobQueue/Table.ts"
import { ModelError } from "../../../src/capabilities/ModelRuntime.ts"
import type { AgentKey, ReadScope } from "../../../src/domain/accounts/Access.ts"
import { EndUserId, RunId } from "../../../src/domain/Ids.ts"
import { AgentRunStore } from "../../../src/store/chat/AgentRuns.ts"
import { hashPassages, passageWrites, StoredPassages } from "../../../src/store/chat/RunPassages.ts"
import { EndUserStore } from "../../../src/store/conversations/EndUsers.ts"
import { ArtifactRows } from "../../../src/store/knowledge/ArtifactRows.ts"
import { ChatTurn } from "../../../src/usecases/chat/ChatTurn.ts"
import { EndUsers } from "../../../src/usecases/conversations/EndUsers.ts"
import { Artifacts } from "../../../src/usecases/knowledge/Artifacts.ts"
import * as Fixtures from "../../Fixtures.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"
import { chunk, request, says, Script, turnLayer } from "./TurnHarness.ts"

const Live = EndUsers.Default.pipe(
  Layer.provideMerge(Artifacts.Default),
  Layer.provideMerge(Layer.mergeAll(EndUserStore.Default, ArtifactRows.Default, layerMemory, layerTable)),
  Layer.provideMerge(turnLayer())
)

const onFreshData = <A, E, R>(test: Effect.Effect<A, E, R>) =>
  Effect.zipRight(reset, Effect.provide(test, Live))

const agent = Effect.gen(function* () {
  return yield* Fixtures.key(yield* Fixtures.agent())
})

const shows = (...places: ReadonlyArray<number>) =>
  Effect.flatMap(Script, ({ chunks }) => Ref.set(chunks, places.map(chunk)))

/** The run of a turn that was followed to its end. */
const asked = (key: AgentKey, fields: Readonly<Record<string, unknown>> = {}) =>
  Effect.gen(function* () {
    const turn = yield* (yield* ChatTurn).start(key, request(fields))
    yield* Effect.ignore(Stream.runDrain(turn.parts))
    return turn.runId ?? RunId.make("none")
  })

const shownIn = (scope: ReadScope, runId: RunId) =>
  Effect.map(
    Effect.flatMap(AgentRunStore, (store) => store.trace(scope, runId, { limit: 20, after: 0 })),
    Option.match({ onNone: () => [], onSome: ({ passages }) => passages })
  )

const stored = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ readonly texts: number; readonly references: number }>`
    select (select count(*)::int from passages) as texts, (select count(*)::int from run_passages) as "references"`
  return [row?.texts, row?.references]
})

const texts = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ readonly content: string }>`select content from passages order by content`
  return rows.map(({ content }) => content)
})

eachEngineLive("A passage that a turn's model was shown", (it, engine) => {
  it.scoped("is in the trace unchanged, with its number, title, address and score", () =>
    Effect.gen(function* () {
      const key = yield* agent
      yield* shows(1, 2)
      const runId = yield* asked(key)
      yield* shows(3)
      expect(yield* shownIn(key, runId)).toEqual(
        [1, 2].map((place) => {
          const { documentId, heading, id, score, sourceId, sourceName, text, title, url } = chunk(place)
          return {
            index: place,
            chunkId: id,
            documentId,
            heading,
            score,
            sourceId,
            sourceName,
            text,
            title,
            url
          }
        })
      )
    }).pipe(onFreshData)
  )

  it.scoped("is stored for a turn that failed after the model was called", () =>
    Effect.gen(function* () {
      const key = yield* agent
      yield* shows(1)
      const { reply } = yield* Script
      yield* Ref.set(reply, () =>
        Stream.fail(new ModelError({ reason: "Rejected", message: "no", retryable: false }))
      )
      const runId = yield* asked(key)
      expect((yield* shownIn(key, runId)).map(({ text }) => text)).toEqual(["Fact number 1."])
    }).pipe(onFreshData)
  )

  it.scoped("is stored once for any number of turns, and again after it has changed", () =>
    Effect.gen(function* () {
      const key = yield* agent
      yield* shows(1, 2)
      const runs = yield* Effect.replicateEffect(asked(key), 20)
      expect(yield* stored).toEqual([2, 40])
      const { chunks } = yield* Script
      yield* Ref.set(chunks, [{ ...chunk(1), text: "Another fact." }])
      yield* asked(key)
      expect(yield* stored).toEqual([3, 41])
      expect((yield* shownIn(key, runs[0] ?? RunId.make("none"))).map(({ text }) => text)).toEqual([
        "Fact number 1.",
        "Fact number 2."
      ])
    }).pipe(onFreshData)
  )

  it.scoped(
    "is sent to the database as text until it is stored, then only as its hash; for another tenant as text again",
    () =>
      Effect.gen(function* () {
        const key = yield* agent
        yield* shows(1)
        const passages = hashPassages(yield* shownIn(key, yield* asked(key)))
        const sql = yield* SqlClient.SqlClient
        const known = new StoredPassages()
        const isTextSent = (scope: ReadScope) => {
          const [, parameters] = sql`${passageWrites(sql, scope, passages, known)}`.compile()
          return JSON.stringify(parameters).includes("Fact number 1.")
        }
        yield* known.settle(key, passages, Effect.succeed({ _tag: "Fenced" }))
        expect(isTextSent(key)).toBe(true)
        yield* known.settle(key, passages, Effect.succeed({ _tag: "Written" }))
        expect([isTextSent(key), isTextSent(yield* agent)]).toEqual([false, true])
      }).pipe(onFreshData)
  )

  it.scoped("is stored again after it was removed, also together with others that were not", () =>
    Effect.gen(function* () {
      const key = yield* agent
      yield* shows(1, 2)
      yield* asked(key)
      yield* shows(2)
      yield* asked(key)
      const sql = yield* SqlClient.SqlClient
      yield* sql`delete from agent_runs where id = (select min(id) from agent_runs)`
      yield* sql`delete from passages p where not exists (select from run_passages r where r.hash = p.hash)`
      expect(yield* texts).toEqual(["Fact number 2."])
      yield* shows(1, 2)
      const runId = yield* asked(key)
      expect(yield* texts).toEqual(["Fact number 1.", "Fact number 2."])
      expect((yield* shownIn(key, runId)).map(({ text }) => text)).toEqual([
        "Fact number 1.",
        "Fact number 2."
      ])
    }).pipe(onFreshData)
  )

  it.scoped("belongs to one tenant: the same text of another tenant is another row", () =>
    Effect.gen(function* () {
      const [one, other] = [yield* agent, yield* agent]
      yield* shows(1)
      const [mine, theirs] = [yield* asked(one), yield* asked(other)]
      expect(yield* stored).toEqual([2, 2])
      expect(yield* shownIn(one, theirs)).toEqual([])
      const sql = yield* SqlClient.SqlClient
      yield* sql`delete from agents where id = ${other.agentId}`
      expect(yield* stored).toEqual([1, 1])
      expect(yield* shownIn(one, mine)).toHaveLength(1)
      const crossing = sql`
        insert into run_passages (tenant_id, run_id, number, hash, source_id, document_id, chunk_id, score)
        select ${other.tenantId}, run_id, 9, hash, source_id, document_id, chunk_id, score from run_passages`
      expect((yield* Effect.flip(crossing))._tag).toBe("SqlError")
    }).pipe(onFreshData)
  )

  it.scoped("is removed with the last run that was shown it: with a deleted run, conversation or agent", () =>
    Effect.gen(function* () {
      const key = yield* agent
      const sql = yield* SqlClient.SqlClient
      yield* shows(1, 2)
      const first = yield* asked(key)
      yield* shows(2, 3)
      const second = yield* asked(key)
      yield* sql`delete from agent_runs where id = ${first}`
      expect(yield* texts).toEqual(["Fact number 2.", "Fact number 3."])
      yield* shows(4)
      yield* asked(key)
      yield* sql`
        delete from conversations where id = (select conversation_id from agent_runs where id = ${second})`
      expect(yield* texts).toEqual(["Fact number 4."])
      yield* sql`delete from agents where id = ${key.agentId}`
      expect(yield* stored).toEqual([0, 0])
    }).pipe(onFreshData)
  )

  it.scoped("is erased with its end user, unless another one's turn was shown it too", () =>
    Effect.gen(function* () {
      const key = yield* agent
      yield* shows(1, 2)
      const runId = yield* asked(key, { externalEndUserId: "ada" })
      yield* shows(2)
      yield* asked(key, { externalEndUserId: "sue" })
      const sql = yield* SqlClient.SqlClient
      const [ada] = yield* sql<{ readonly id: string }>`
        select c.end_user_id as id from agent_runs r join conversations c on c.id = r.conversation_id
        where r.id = ${runId}`
      yield* (yield* EndUsers).erase(key, EndUserId.make(ada?.id ?? ""))
      expect(yield* texts).toEqual(["Fact number 2."])
      expect(yield* stored).toEqual([1, 1])
    }).pipe(onFreshData)
  )

  it.scoped("is not stored for a turn that stores nothing", () =>
    Effect.gen(function* () {
      const key = yield* agent
      yield* shows(1)
      yield* asked(key, { persist: false })
      expect(yield* stored).toEqual([0, 0])
    }).pipe(onFreshData)
  )

  if (engine === "server") {
    it.scoped("stays complete when runs settle while others with the same passages are deleted", () =>
      Effect.gen(function* () {
        const key = yield* agent
        const sql = yield* SqlClient.SqlClient
        const { reply } = yield* Script
        yield* Ref.set(reply, says("Hello"))
        yield* shows(1, 2, 3)
        yield* Effect.forEach(
          Array.from({ length: 40 }),
          () => Effect.flatMap(asked(key), (id) => sql`delete from agent_runs where id = ${id}`),
          { concurrency: 8 }
        )
        expect(yield* stored).toEqual([0, 0])
        const [failed] = yield* sql<{ readonly count: number }>`
          select turns::int as count from agent_usage where agent_id = ${key.agentId}`
        expect(failed?.count).toBe(40)
        const kept = yield* Effect.forEach(
          Array.from({ length: 40 }),
          (_, place) =>
            Effect.flatMap(asked(key), (id) =>
              place % 2 === 0
                ? Effect.as(sql`delete from agent_runs where id = ${id}`, null)
                : Effect.succeed(id)
            ),
          { concurrency: 8 }
        )
        for (const id of kept) if (id !== null) expect(yield* shownIn(key, id)).toHaveLength(3)
        expect(yield* stored).toEqual([3, 60])
      }).pipe(onFreshData)
    )
  }
})
