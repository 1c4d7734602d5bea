/**
 * LISTEN and NOTIFY, replacing those of `PgClient`. Its `listen` blocks the embedded database (one connection) and
 * never notices a lost server connection, and its `notify` is a syntax error.
 *
 * Here a stream of `listen` **begins with one empty string**. From then on nothing is missed; earlier notifications may
 * have been. It fails with `SqlError` when the connection is lost, so that the listener can reconnect and check again.
 * At most 1,024 notifications are buffered for a slow reader; the oldest are dropped first.
 *
 * Behind a pooler in transaction mode, no notification arrives. Each listening connection detects this by sending a
 * notification to itself. If it does not arrive, the stream emits the empty string every second instead, which means:
 * check again.
 */
import type { PgClient } from "@effect/sql-pg/PgClient"
import { SqlError } from "@effect/sql/SqlError"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as RcRef from "effect/RcRef"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import { randomUUID } from "node:crypto"
import { EventEmitter } from "node:events"
import * as Pg from "pg"
import { releasedOnFailure } from "../../concurrency/ReleasedOnFailure.ts"
import { isError } from "../../domain/ThrownErrors.ts"
import { DatabaseFailure } from "./Failure.ts"

const bufferOptions = { bufferSize: 1_024, strategy: "sliding" } as const

/** `pg_notify` joins the caller's transaction. It is delivered on commit. */
export const notifyBy =
  (client: PgClient): PgClient["notify"] =>
  (channel, payload) =>
    Effect.asVoid(client`select pg_notify(${channel}, ${payload})`)

/** Listens on the only session of the embedded database. UNLISTEN runs when the last reader of a channel leaves. */
export const listenEmbedded = (client: PgClient, pool: Pg.Pool): PgClient["listen"] => {
  const emitter = new EventEmitter<{ readonly [channel: string]: [payload: string] }>().setMaxListeners(0)
  pool.on("connect", (connection) => {
    connection.on("notification", ({ channel, payload = "" }) => void emitter.emit(channel, payload))
  })
  const readers = new Map<string, number>()
  const addReaders = (channel: string, by: number) => {
    const now = (readers.get(channel) ?? 0) + by
    readers.set(channel, now)
    return now
  }
  return (channel) =>
    Stream.asyncPush<string, SqlError>(
      (emit) =>
        Effect.gen(function* () {
          yield* Effect.acquireRelease(
            Effect.sync(() => {
              addReaders(channel, 1)
              const onNotification = (payload: string) => {
                if (payload !== "") emit.single(payload)
              }
              emitter.on(channel, onNotification)
              return onNotification
            }),
            (onNotification) =>
              Effect.suspend(() => {
                emitter.off(channel, onNotification)
                return addReaders(channel, -1) === 0
                  ? Effect.ignore(client`unlisten ${client(channel)}`)
                  : Effect.void
              })
          )
          yield* client`listen ${client(channel)}`
          emit.single("")
        }),
      bufferOptions
    )
}

/** A connection that remembers its end, because `pg` reports it only to current listeners. */
class LiveConnection {
  readonly client: Pg.Client
  closed = false
  /** Whether notifications arrive on this connection. */
  receives = false
  readonly #mutex = Effect.unsafeMakeSemaphore(1)
  constructor(client: Pg.Client) {
    this.client = client
    client.setMaxListeners(0)
    client.on("error", () => {
      this.closed = true
    })
    client.on("end", () => {
      this.closed = true
    })
  }

  /** Runs statements one at a time. The driver does not support concurrent statements. */
  run(statement: string) {
    return this.#mutex.withPermits(1)(Effect.tryPromise(() => this.client.query(statement)))
  }
}

/** Time-out of a connection's notification to itself. */
const probeTimeout = "5 seconds"
/** Polling interval of listeners on which notifications do not arrive. */
const pollInterval = "1 second"

export interface ListenOptions {
  /** The variable with the address of the connection. */
  readonly variable: string
  readonly makeConnection: () => Pg.Client
  readonly connectTimeout: Duration.DurationInput
  /** Notifies over another connection, as other processes do. */
  readonly notify: PgClient["notify"]
}

/** The driver's message and code, without remedies, which are for the connections of statements. */
const reasonOf = (cause: unknown): string => {
  if (!isError(cause)) return `: it ${String(cause)}`
  const { code = "", message } = new DatabaseFailure(cause)
  return message === "" ? ` (${code})` : `: ${message}${code === "" ? "" : ` (${code})`}`
}

/** Whether notifications sent with `notify` arrive on `client`. */
const probe = (live: LiveConnection, notify: PgClient["notify"]) => {
  const { client } = live
  const channel = `spoke_probe_${randomUUID()}`
  const received = Effect.async<boolean>((resume) => {
    const onNotification = (message: Pg.Notification) => {
      if (message.channel === channel) resume(Effect.succeed(true))
    }
    client.on("notification", onNotification)
    return Effect.sync(() => client.off("notification", onNotification))
  })
  const listenAndNotify = live
    .run(`listen "${channel}"`)
    .pipe(Effect.zipRight(notify(channel, "heard")), Effect.zipRight(Effect.never))
  return Effect.raceFirst(received, listenAndNotify).pipe(
    Effect.timeoutTo({ duration: probeTimeout, onSuccess: () => true, onTimeout: () => false }),
    Effect.tap((receives) =>
      receives
        ? Effect.ignore(live.run(`unlisten "${channel}"`))
        : Effect.logWarning(
            "Notifications of PostgreSQL do not arrive, as behind a pooler in transaction mode: " +
              "work of other processes is looked for every second. SPOKE_DATABASE_DIRECT_URL mends that"
          )
    )
  )
}

/** Listens on one separate connection for all channels of the process. It is opened for the first reader. */
export const listenNative = ({ connectTimeout, makeConnection, notify, variable }: ListenOptions) =>
  Effect.gen(function* () {
    const lost = (cause: unknown) =>
      new SqlError({
        cause,
        message: `There is no connection to ${variable} for notifications${reasonOf(cause)}`
      })
    const connection = yield* RcRef.make({
      acquire: releasedOnFailure(
        Effect.acquireRelease(
          Effect.sync(() => new LiveConnection(makeConnection())),
          ({ client }) =>
            Effect.promise(() => client.end().catch(() => undefined)).pipe(Effect.timeoutOption("1 second"))
        ).pipe(
          Effect.tap(({ client }) =>
            Effect.tryPromise({ try: () => client.connect(), catch: lost }).pipe(
              Effect.timeoutFail({
                duration: connectTimeout,
                onTimeout: () => lost("did not answer in time")
              })
            )
          ),
          Effect.tap((live) =>
            probe(live, notify).pipe(
              Effect.mapError(lost),
              Effect.map((receives) => {
                live.receives = receives
              })
            )
          )
        )
      )
    })
    const listen: PgClient["listen"] = (channel) =>
      Stream.asyncPush<string, SqlError>(
        (emit) =>
          Effect.gen(function* () {
            const live = yield* RcRef.get(connection)
            const { client } = live
            if (live.closed) {
              yield* RcRef.invalidate(connection)
              return yield* lost("was closed")
            }
            const onNotification = (message: Pg.Notification) => {
              if (message.channel === channel && message.payload) emit.single(message.payload)
            }
            const onEnd = () => emit.fail(lost("was closed"))
            yield* Effect.acquireRelease(
              Effect.sync(() => {
                client.on("notification", onNotification)
                client.on("end", onEnd)
              }),
              () =>
                Effect.sync(() => {
                  client.off("notification", onNotification)
                  client.off("end", onEnd)
                })
            )
            yield* Effect.mapError(live.run(`listen ${Pg.escapeIdentifier(channel)}`), lost)
            emit.single("")
            if (live.receives) return
            yield* Effect.sync(() => emit.single("")).pipe(
              Effect.repeat(Schedule.spaced(pollInterval)),
              Effect.delay(pollInterval),
              Effect.forkScoped
            )
          }).pipe(Effect.tapError(() => RcRef.invalidate(connection))),
        bufferOptions
      )
    return listen
  })
