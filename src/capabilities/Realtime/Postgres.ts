/**
 * {@link Realtime} by LISTEN and NOTIFY. A signal reaches the subscribers of its own process at once; the others hear of
 * it in the background, many in one statement, so that publishing never waits for the database.
 */
import * as PgClient from "@effect/sql-pg/PgClient"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { Realtime, Signal } from "../Realtime.ts"
import * as Subscribers from "./Subscribers.ts"

const channel = "spoke_realtime"

/** Signals that wait to be sent; the oldest go first. */
const backlog = 4_096
/** Signals of one statement. */
const maxBatchSize = 100
/** Longest wait for the database to take a batch. */
const batchTimeout = "5 seconds"

/** What travels: at most 500 bytes, where PostgreSQL takes 8,000. */
const Letter = Schema.parseJson(Schema.Struct({ from: Schema.String, signal: Signal }))
const write = Schema.encodeSync(Letter)
const read = Schema.decodeUnknownOption(Letter)

export const layerPostgres = Layer.scoped(
  Realtime,
  Effect.gen(function* () {
    const sql = yield* PgClient.PgClient
    const from = crypto.randomUUID()
    const { deliver, disturb, subscribe } = Subscribers.make()
    const outgoing = yield* Queue.sliding<Signal>(backlog)

    const send = (signals: Chunk.Chunk<Signal>) => {
      const letters = Chunk.toReadonlyArray(signals).map((signal) => write({ from, signal }))
      return sql`
        select pg_notify(${channel}, letter) from jsonb_array_elements_text(${JSON.stringify(letters)}::jsonb) letter`.pipe(
        Effect.timeout(batchTimeout),
        Effect.catchAllCause((cause) => Effect.logWarning("Other processes could not be told", cause))
      )
    }
    yield* Queue.takeBetween(outgoing, 1, maxBatchSize).pipe(
      Effect.flatMap(send),
      Effect.forever,
      Effect.forkScoped
    )

    /** An empty letter says that others may have been lost before it. */
    const receive = (letter: string) => {
      if (letter === "") return disturb
      const received = read(letter)
      return Option.isSome(received) && received.value.from !== from
        ? deliver(received.value.signal)
        : Effect.void
    }
    yield* sql.listen(channel).pipe(
      Stream.runForEach(receive),
      Effect.catchAllCause((cause) => Effect.logWarning("Other processes cannot be heard", cause)),
      Effect.repeat(Schedule.spaced("1 second")),
      Effect.forkScoped
    )

    return {
      publish: (signal) => Effect.zipRight(deliver(signal), Effect.asVoid(Queue.offer(outgoing, signal))),
      subscribe
    }
  })
)
