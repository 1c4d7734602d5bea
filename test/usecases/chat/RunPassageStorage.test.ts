/** How much storage the references from turns to passages take: the same on both engines, whose files are alike. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import * as Stream from "effect/Stream"
import type { FoundChunk } from "../../../src/capabilities/VectorSearch.ts"
import { newId } from "../../../src/domain/Ids.ts"
import { ChatTurn } from "../../../src/usecases/chat/ChatTurn.ts"
import * as Fixtures from "../../Fixtures.ts"
import { embeddedLive, reset } from "../../TestDatabase.ts"
import { chunk, request, says, Script, turnLayer } from "./TurnHarness.ts"

const turns = 500
const passages = 60
const shown = 6
const turnsOfConversation = 10

/** Passages of 1,200 characters with ids as they are made. */
const manual = Effect.forEach(Array.from({ length: passages }), (_, place) =>
  Effect.gen(function* () {
    const text = Array.from({ length: 120 }, (_, at) =>
      String((place * 7_919 + at * 104_729) % 1e9).padEnd(10)
    )
    const found: FoundChunk = {
      ...chunk(place),
      id: yield* newId.chunk,
      documentId: yield* newId.document,
      sourceId: yield* newId.source,
      text: text.join("")
    }
    return found
  })
)

/**
 * Bytes of all tables with their indexes, written anew: those that keep passages, and the others.
 * Rows that updates left behind would make the figure depend on when the database last vacuumed.
 */
const sizes = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`vacuum full`
  const [row] = yield* sql<{ readonly kept: number; readonly others: number }>`
    select sum(bytes) filter (where keeps)::float8 as kept, sum(bytes) filter (where not keeps)::float8 as others
    from (
      select pg_total_relation_size(c.oid) as bytes, c.relname ~ '^(passages|run_passages)$' as keeps
      from pg_class c where c.relkind = 'r' and c.relnamespace = current_schema()::regnamespace
    ) t`
  return row ?? { kept: 0, others: 0 }
})

embeddedLive("Turns that keep what their models were shown", (it) => {
  it.scoped(
    "take at most 1.3 times the storage that they take without it",
    () =>
      Effect.gen(function* () {
        yield* reset
        const key = yield* Fixtures.key(yield* Fixtures.agent())
        const { chunks, reply } = yield* Script
        yield* Ref.set(
          reply,
          says("The shop opens at nine o'clock in the morning, and closes at six. ", "[1] [2]")
        )
        const all = yield* manual
        const before = yield* sizes
        const sql = yield* SqlClient.SqlClient
        let conversation: Readonly<Record<string, unknown>> = {}
        for (let turn = 0; turn < turns; turn += 1) {
          yield* Ref.set(
            chunks,
            Array.from({ length: shown }, (_, at) => all[(turn * 7 + at * 11) % passages] ?? chunk(1))
          )
          if (turn % turnsOfConversation === 0) conversation = {}
          const started = yield* (yield* ChatTurn).start(
            key,
            request({ message: `When does the shop open on day ${turn}?`, ...conversation })
          )
          yield* Stream.runDrain(started.parts)
          const [run = {}] = yield* sql`
            select conversation_id as "conversationId" from agent_runs
            where tenant_id = ${key.tenantId} and id = ${started.runId ?? ""}`
          conversation = run
        }
        const after = yield* sizes
        const [kept, others] = [after.kept - before.kept, after.others - before.others]
        yield* Effect.log(`${others} bytes without passages, and ${kept} for passages`)
        expect((others + kept) / others).toBeLessThan(1.3)
      }).pipe(Effect.provide(turnLayer())),
    240_000
  )
})
