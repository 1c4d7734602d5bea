/**
 * One realtime socket. The framework's socket can neither ping nor report unsent bytes, so both use the TCP connection
 * below it. After the end of the socket the connection is closed within a second, because the listener does not wait
 * for it.
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

/** Maximum unsent bytes. With more, no further frames are read for the client. */
const maxBufferedBytes = 256 * 1_024
/** A client that receives nothing for this long is considered gone. */
const sendTimeout = Duration.seconds(30)
/** Maximum bytes from a client, which sends only pongs and a close frame. More of them close the socket. */
const maxIncomingBytes = 64 * 1_024
/** Time-out of the closing handshake. */
const closeTimeout = Duration.seconds(1)

/** A ping without payload (RFC 6455 5.5.2). */
const pingFrame = Uint8Array.of(0x89, 0x00)

/** Close codes of RFC 6455 7.4; from 4000 on our own. */
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

/** Waits until `connection` has sent its buffered bytes, if they are more than {@link maxBufferedBytes}. */
const awaitDrain = (connection: NetSocket) =>
  Effect.async<void>((resume) => {
    if (connection.writableLength <= maxBufferedBytes) return resume(Effect.void)
    const onDrain = () => resume(Effect.void)
    connection.once("drain", onDrain)
    return Effect.sync(() => connection.off("drain", onDrain))
  })

/** Sends pings, and returns when the client has sent no byte between two of them. */
const awaitSilence = (connection: NetSocket, interval: Duration.DurationInput) =>
  Effect.gen(function* () {
    for (;;) {
      const before = connection.bytesRead
      yield* Effect.sync(() => connection.write(pingFrame))
      yield* Effect.sleep(interval)
      if (connection.bytesRead === before) return
    }
  })

/** Returns when the client has sent more than it may. */
const awaitExcessInput = (connection: NetSocket) =>
  Effect.async<void>((resume) => {
    const bytesBefore = connection.bytesRead
    const onData = () => {
      if (connection.bytesRead - bytesBefore > maxIncomingBytes) resume(Effect.void)
    }
    connection.on("data", onData)
    return Effect.sync(() => connection.off("data", onData))
  })

/** Returns when the connection is closed. A handshake that is refused ends in no other way. */
const awaitClosed = (connection: NetSocket) =>
  Effect.async<void>((resume) => {
    if (connection.destroyed) return resume(Effect.void)
    const onClose = () => resume(Effect.void)
    connection.once("close", onClose)
    return Effect.sync(() => connection.off("close", onClose))
  })

const makeCloseEvent = (code: number, reason: string) => new Socket.CloseEvent(code, reason)

const goingAway = makeCloseEvent(codes.goingAway, "The server is stopping.")
const internalError = makeCloseEvent(codes.broken, "Something went wrong on our side.")

/** Sends the close frame, waits briefly for the client's, and closes the connection. */
const closeSocket = (
  closeEvent: Socket.CloseEvent | null,
  { connection, reading, write }: OpenSocket
): Effect.Effect<void> => {
  const handshake =
    closeEvent === null
      ? Effect.void
      : Effect.raceFirst(Fiber.await(reading), Effect.zipRight(write(closeEvent), Effect.never))
  return handshake.pipe(
    Effect.ignore,
    Effect.timeoutOption(closeTimeout),
    Effect.zipRight(Effect.sync(() => connection.destroy())),
    Effect.zipRight(Fiber.interruptFork(reading)),
    // In a separate fiber, because a fiber that is being interrupted cannot time out.
    Effect.interruptible,
    Effect.forkDaemon,
    Effect.flatMap(Fiber.join)
  )
}

interface OpenSocket {
  readonly connection: NetSocket
  /** Ends with the socket. */
  readonly reading: Fiber.Fiber<unknown>
  readonly write: (text: string | Socket.CloseEvent) => Effect.Effect<void, Socket.SocketError>
}

const open = (request: HttpServerRequest.HttpServerRequest, opened: Deferred.Deferred<void>) =>
  Effect.gen(function* () {
    const socket = yield* request.upgrade
    const onOpen = Effect.asVoid(Deferred.succeed(opened, undefined))
    const openSocket: OpenSocket = {
      connection: connectionOf(request),
      write: yield* socket.writer,
      reading: yield* Effect.forkDaemon(Effect.exit(socket.runRaw(() => undefined, { onOpen })))
    }
    return openSocket
  })

/**
 * Upgrades `request`, sends `frames`, and returns once the connection is closed: with the close code that `frames` fail
 * with or that `until` returns, or when the client leaves, stops responding or sends too much.
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
  const use = ({ connection, reading, write }: OpenSocket) => {
    const deliver = frames.pipe(
      Stream.runForEach((frame) =>
        write(frame).pipe(Effect.zipRight(awaitDrain(connection)), Effect.timeout(sendTimeout))
      ),
      Effect.zipRight(Effect.never),
      Effect.catchAll((ended) => Effect.succeed(Socket.isCloseEvent(ended) ? ended : null))
    )
    const disconnected = Effect.as(Effect.raceFirst(Fiber.await(reading), awaitClosed(connection)), null)
    const whileOpen = deliver.pipe(
      Effect.raceFirst(until),
      Effect.raceFirst(Effect.as(awaitSilence(connection, pingEvery), null)),
      Effect.raceFirst(
        Effect.as(
          awaitExcessInput(connection),
          makeCloseEvent(codes.tooBig, "Nothing is read from this socket.")
        )
      )
    )
    return Deferred.await(opened).pipe(
      Effect.zipRight(whileOpen),
      Effect.raceFirst(disconnected),
      Effect.catchAllDefect((defect) =>
        Effect.as(Effect.logError("A realtime socket broke", defect), internalError)
      )
    )
  }
  yield* Effect.acquireUseRelease(open(request, opened), use, (socket, exit) =>
    closeSocket(Exit.isSuccess(exit) ? exit.value : goingAway, socket)
  )
}, Effect.scoped)
