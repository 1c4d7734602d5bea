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
const Notification = Schema.parseJson(Schema.Struct({ from: Schema.String, signal: Signal }))
const encode = Schema.encodeSync(Notification)
const decode = Schema.decodeUnknownOption(Notification)

export const layerPostgres = Layer.scoped(
  Realtime,
  Effect.gen(function* () {
    const sql = yield* PgClient.PgClient
    const from = crypto.randomUUID()
    const { deliver, makePublish, signalAll, subscribe } = Subscribers.make()

    const publish = yield* makePublish((signals) => {
      const notifications = signals.map((signal) => encode({ from, signal }))
      return sql`
        select pg_notify(${channel}, notification) from jsonb_array_elements_text(${JSON.stringify(notifications)}::jsonb) notification`.pipe(
        Effect.timeout(batchTimeout)
      )
    })

    /** An empty notification means that earlier ones may have been lost. */
    const receive = (notification: string) => {
      if (notification === "") return signalAll
      const received = decode(notification)
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
