/**
 * {@link Realtime} by LISTEN and NOTIFY. A signal reaches the subscribers of its own process at once. Other processes
 * get it in the background, in batches, so that publishing never waits for the database.
 */
import * as PgClient from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { Realtime, Signal } from "../Realtime.ts"
import * as Subscribers from "./Subscribers.ts"

const channel = "spoke_realtime"

/** Time-out for sending a batch. */
const batchTimeout = "5 seconds"

/** A notification, of at most 500 bytes; PostgreSQL allows 8,000. */
const Letter = Schema.parseJson(Schema.Struct({ from: Schema.String, signal: Signal }))
const write = Schema.encodeSync(Letter)
const read = Schema.decodeUnknownOption(Letter)

export const layerPostgres = Layer.scoped(
  Realtime,
  Effect.gen(function* () {
    const sql = yield* PgClient.PgClient
    const from = crypto.randomUUID()
    const { deliver, publisher, signalAll, subscribe } = Subscribers.make()

    const publish = yield* publisher((signals) => {
      const letters = signals.map((signal) => write({ from, signal }))
      return sql`
        select pg_notify(${channel}, letter) from jsonb_array_elements_text(${JSON.stringify(letters)}::jsonb) letter`.pipe(
        Effect.timeout(batchTimeout)
      )
    })

    /** An empty notification means that earlier ones may have been lost. */
    const receive = (letter: string) => {
      if (letter === "") return signalAll
      const received = read(letter)
      return Option.isSome(received) && received.value.from !== from
        ? deliver(received.value.signal)
        : Effect.void
    }
    yield* sql.listen(channel).pipe(
      Stream.runForEach(receive),
      Effect.catchAllCause((cause) =>
        Effect.logWarning("Notifications of other processes cannot be received", cause)
      ),
      Effect.repeat(Schedule.spaced("1 second")),
      Effect.forkScoped
    )

    return { publish, subscribe }
  })
)
