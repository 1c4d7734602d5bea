/**
 * One realtime socket. The framework's socket can neither ping nor say how much of what was written is still to be sent;
 * the TCP connection below it can, so both are done there. Whatever ends the socket, the connection is gone a second later:
 * the listener does not wait for it.
 */
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as Socket from "@effect/platform/Socket"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { IncomingMessage } from "node:http"
import type { Socket as NetSocket } from "node:net"

/** Bytes that may wait to be sent before nothing more is read for the client. */
const maxBufferedBytes = 256 * 1_024
/** A client that takes nothing for this long has gone. */
const sendTimeout = Duration.seconds(30)
/** Clients have nothing to say but pongs and a close: more bytes than these close the socket. */
const maxIncomingBytes = 64 * 1_024
/** Longest wait for the client's side of the closing handshake. */
const closeTimeout = Duration.seconds(1)

/** A ping without payload, as RFC 6455 5.5.2 frames it. */
const pingFrame = Uint8Array.of(0x89, 0x00)

/** Close codes of RFC 6455 7.4 and, from 4000 on, our own. */
export const codes = {
  goingAway: 1001,
  tooBig: 1009,
  broken: 1011,
  tryAgainLater: 1013,
  unauthorized: 4401
} as const

const connectionOf = (request: HttpServerRequest.HttpServerRequest): NetSocket => {
  if (!(request.source instanceof IncomingMessage)) throw new Error("The request came over no connection.")
  return request.source.socket
}

/** Returns when `connection` has sent what was waiting; never when it does not. */
const drained = (connection: NetSocket) =>
  Effect.async<void>((resume) => {
    if (connection.writableLength <= maxBufferedBytes) return resume(Effect.void)
    const onDrain = () => resume(Effect.void)
    connection.once("drain", onDrain)
    return Effect.sync(() => connection.off("drain", onDrain))
  })

/** Pings, and returns when the client has not sent a byte between two pings. */
const silence = (connection: NetSocket, every: Duration.DurationInput) =>
  Effect.gen(function* () {
    for (;;) {
      const before = connection.bytesRead
      yield* Effect.sync(() => connection.write(pingFrame))
      yield* Effect.sleep(every)
      if (connection.bytesRead === before) return
    }
  })

/** Returns when the client has sent more than it may. */
const flooded = (connection: NetSocket) =>
  Effect.async<void>((resume) => {
    const first = connection.bytesRead
    const onData = () => {
      if (connection.bytesRead - first > maxIncomingBytes) resume(Effect.void)
    }
    connection.on("data", onData)
    return Effect.sync(() => connection.off("data", onData))
  })

const close = (code: number, reason: string) => new Socket.CloseEvent(code, reason)

const goingAway = close(codes.goingAway, "The server is stopping.")
const broken = close(codes.broken, "Something went wrong on our side.")

/** Says goodbye, waits a little for the client's, and cuts the connection. */
const end = (
  goodbye: Socket.CloseEvent | null,
  { connection, reading, write }: Opened
): Effect.Effect<void> => {
  const handshake =
    goodbye === null
      ? Effect.void
      : Effect.raceFirst(Fiber.await(reading), Effect.zipRight(write(goodbye), Effect.never))
  return handshake.pipe(
    Effect.ignore,
    Effect.timeoutOption(closeTimeout),
    Effect.zipRight(Effect.sync(() => connection.destroy())),
    Effect.zipRight(Fiber.interruptFork(reading)),
    // In a fiber of its own, because one that is being interrupted cannot stop waiting.
    Effect.interruptible,
    Effect.forkDaemon,
    Effect.flatMap(Fiber.join)
  )
}

interface Opened {
  readonly connection: NetSocket
  /** Ends with the socket. */
  readonly reading: Fiber.Fiber<unknown>
  readonly write: (text: string | Socket.CloseEvent) => Effect.Effect<void, Socket.SocketError>
}

const open = (request: HttpServerRequest.HttpServerRequest, opened: Deferred.Deferred<void>) =>
  Effect.gen(function* () {
    const socket = yield* request.upgrade
    const onOpen = Effect.asVoid(Deferred.succeed(opened, undefined))
    const view: Opened = {
      connection: connectionOf(request),
      write: yield* socket.writer,
      reading: yield* Effect.forkDaemon(Effect.exit(socket.runRaw(() => undefined, { onOpen })))
    }
    return view
  })

/**
 * Upgrades `request`, sends `frames` and returns once the connection is closed: with the code that `frames` fail with or
 * that `until` comes to, or when the client leaves, goes silent or talks too much.
 */
export const serve = Effect.fn("Connection.serve")(function* (
  request: HttpServerRequest.HttpServerRequest,
  frames: Stream.Stream<string, Socket.CloseEvent>,
  {
    pingEvery,
    until
  }: { readonly pingEvery: Duration.DurationInput; readonly until: Effect.Effect<Socket.CloseEvent> }
) {
  const opened = yield* Deferred.make<void>()
  const use = ({ connection, reading, write }: Opened) => {
    const deliver = frames.pipe(
      Stream.runForEach((frame) =>
        write(frame).pipe(Effect.zipRight(drained(connection)), Effect.timeout(sendTimeout))
      ),
      Effect.zipRight(Effect.never),
      Effect.catchAll((ended) => Effect.succeed(Socket.isCloseEvent(ended) ? ended : null))
    )
    const left = Effect.as(Fiber.await(reading), null)
    const whileOpen = deliver.pipe(
      Effect.raceFirst(until),
      Effect.raceFirst(Effect.as(silence(connection, pingEvery), null)),
      Effect.raceFirst(
        Effect.as(flooded(connection), close(codes.tooBig, "Nothing is read from this socket."))
      )
    )
    return Deferred.await(opened).pipe(
      Effect.zipRight(whileOpen),
      Effect.raceFirst(left),
      Effect.catchAllDefect((defect) => Effect.as(Effect.logError("A realtime socket broke", defect), broken))
    )
  }
  yield* Effect.acquireUseRelease(open(request, opened), use, (view, exit) =>
    end(Exit.isSuccess(exit) ? exit.value : goingAway, view)
  )
}, Effect.scoped)
