/**
 * Reads the bodies of all requests. Bodies in memory share one budget, fairly between clients. A body that arrives too
 * slowly is refused. Bytes that a client sends after its response are discarded for a while, so that it can read the
 * response.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import { types } from "node:util"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { PayloadTooLarge, ServiceUnavailable, ValidationError } from "../../domain/Errors.ts"
import { FairLimiter, type Permit } from "../../concurrency/FairLimiter.ts"
import { GrowingBuffer } from "./GrowingBuffer.ts"
import { MiB } from "../../domain/Bytes.ts"

export interface BodyLimits {
  /** Maximum bytes of all bodies in memory. */
  readonly maxBufferedBytes: number
  /** Time that a body of any size may take before `minBytesPerSecond` applies, in milliseconds. */
  readonly graceMillis: number
  /** Slowest rate at which a body may arrive after that. */
  readonly minBytesPerSecond: number
  /** Time after the response for which further bytes are discarded, in milliseconds. */
  readonly lingerMillis: number
}

/** The limits of every server. */
export class RequestBodyLimits extends Context.Reference<RequestBodyLimits>()("http/RequestBody/Limits", {
  defaultValue: (): BodyLimits => ({
    maxBufferedBytes: 128 * MiB,
    graceMillis: 10_000,
    minBytesPerSecond: 4_096,
    lingerMillis: 5_000
  })
}) {}

type BodyError = PayloadTooLarge | ValidationError | ServiceUnavailable

export const tooLarge = (maxBytes: number) =>
  new PayloadTooLarge({ message: `The body may take at most ${maxBytes} bytes.` })
export const endedEarly = () => new ValidationError({ message: "The body ended too early." })
const tooSlow = () => new ValidationError({ message: "The body comes too slowly, or has stopped coming." })
const tooManyBodies = () =>
  new ServiceUnavailable({
    message: "The server is reading too many bodies. Try again later.",
    details: { retryAfterSeconds: 1 }
  })

/** A body that is being read. */
interface Reader {
  readonly request: IncomingMessage
  readonly bytesBefore: number
  waitedMillis: number
  readonly abandon: (reason: "slow" | "revoked") => void
}

/** A request that a server has accepted. */
interface AcceptedRequest {
  readonly bodies: RequestBodies
  readonly owner: string
  readonly response: ServerResponse
  /** The share of the memory budget that its body holds. */
  permit: Permit | null
  reader: Reader | null
  /** Called once the whole body has arrived. */
  readonly onComplete: () => void
}

const acceptedRequests = new WeakMap<IncomingMessage, AcceptedRequest>()

/**
 * Closes the connection after the response. While the client still sends, only the writing side is closed: a full close
 * would make the client's system discard the response unread.
 */
export const closeAfter = (request: IncomingMessage, response: ServerResponse): void => {
  response.shouldKeepAlive = false
  const { socket } = request
  if (request.complete || socket.destroyed) return
  Object.defineProperty(socket, "destroySoon", { configurable: true, value: () => socket.end() })
}

/** Slow bodies that are refused in one iteration of the event loop. */
const maxEndedAtOnce = 16

/** The bodies of one server's requests. */
export class RequestBodies {
  readonly memory: FairLimiter
  readonly #limits: BodyLimits
  readonly #readers = new Set<Reader>()
  /** Requests that were answered before their bodies had arrived, with the milliseconds since then. */
  readonly #lingering = new Map<IncomingMessage, number>()

  constructor(limits: BodyLimits) {
    this.#limits = limits
    this.memory = new FairLimiter({ name: "request-body-bytes", permits: limits.maxBufferedBytes })
  }

  /**
   * Applies the limits to the body of `request`, for `owner`. Returns a function that must be called when the request
   * begins; until then the body is not read.
   */
  register(
    request: IncomingMessage,
    response: ServerResponse,
    owner: string,
    onComplete: () => void
  ): () => void {
    acceptedRequests.set(request, { bodies: this, owner, response, permit: null, reader: null, onComplete })
    return request.complete ? () => {} : joinPieces(request)
  }

  /** Stops reading the body with 503, if it is being read. */
  revoke(request: IncomingMessage): void {
    acceptedRequests.get(request)?.reader?.abandon("revoked")
  }

  /** Frees the memory of the body. */
  release(request: IncomingMessage): void {
    acceptedRequests.get(request)?.permit?.release()
  }

  /** The request was answered, or its client has disconnected. */
  end(request: IncomingMessage): void {
    this.release(request)
    if (!request.complete && !request.socket.destroyed) this.#lingering.set(request, 0)
  }

  /** True while {@link sweep} must be called. */
  get needsSweep(): boolean {
    return this.#readers.size + this.#lingering.size > 0
  }

  /** Refuses bodies that arrive too slowly. `elapsed`: milliseconds since the last call. */
  sweep(elapsed: number): void {
    const slow: Array<Reader> = []
    for (const reader of this.#readers) {
      const { bytesBefore, request } = reader
      // Bytes that have arrived but are not read yet are not the client's delay.
      if (request.complete || request.readableLength > 0) continue
      reader.waitedMillis += elapsed
      const earned = ((request.socket.bytesRead - bytesBefore) / this.#limits.minBytesPerSecond) * 1_000
      if (reader.waitedMillis > this.#limits.graceMillis + earned) slow.push(reader)
    }
    this.#endSlow(slow)
    for (const [request, millis] of this.#lingering) {
      if (request.complete || request.socket.destroyed) this.#lingering.delete(request)
      else if (millis < this.#limits.lingerMillis) this.#lingering.set(request, millis + elapsed)
      else {
        this.#lingering.delete(request)
        request.socket.destroy()
      }
    }
  }

  /** A few at a time: bodies that began together expire together, and each response takes about half a millisecond. */
  #endSlow(slow: Array<Reader>): void {
    for (const reader of slow.splice(0, maxEndedAtOnce)) if (this.#readers.has(reader)) reader.abandon("slow")
    if (slow.length > 0) setImmediate(() => this.#endSlow(slow))
  }

  addReader(reader: Reader): void {
    this.#readers.add(reader)
  }

  removeReader(reader: Reader): void {
    this.#readers.delete(reader)
  }
}

/** Registers the reader of a body with the request's server. Returns a function that removes it. */
const watch = (request: IncomingMessage, abandon: Reader["abandon"]): (() => void) => {
  const accepted = acceptedRequests.get(request)
  if (accepted === undefined) return () => {}
  const reader: Reader = { request, bytesBefore: request.socket.bytesRead, waitedMillis: 0, abandon }
  accepted.bodies.addReader(reader)
  accepted.reader = reader
  return () => {
    accepted.bodies.removeReader(reader)
    accepted.reader = null
  }
}

/** Bytes of joined pieces after which they are passed on. */
const maxJoinedBytes = 16_384
/** Pieces of at least this size are passed on unjoined. */
const minPieceBytes = 1_024

/**
 * Joins small pieces of the body before they are passed on. Node allocates a buffer of about 250 bytes for each chunk,
 * even for a single byte. A client may send thousands of chunks in one packet, which would take forty times the memory
 * of the packet. The returned function must be called when the request begins.
 */
const joinPieces = (request: IncomingMessage): (() => void) => {
  const { push } = request
  const pieces = new GrowingBuffer(Number.POSITIVE_INFINITY)
  let hasBegun = false
  let scheduled: NodeJS.Immediate | null = null
  const pushPiece = (piece: unknown): boolean => Boolean(Reflect.apply(push, request, [piece]))
  const flush = (): boolean => {
    if (scheduled !== null) clearImmediate(scheduled)
    scheduled = null
    return pieces.length === 0 || pushPiece(pieces.take())
  }
  Object.defineProperty(request, "push", {
    value: (piece: unknown): boolean => {
      if (!Buffer.isBuffer(piece)) {
        flush()
        return pushPiece(piece)
      }
      if (hasBegun && pieces.length === 0 && piece.length >= minPieceBytes) return pushPiece(piece)
      pieces.add(piece)
      if (pieces.length >= maxJoinedBytes) return flush()
      // After all chunks of the packet.
      if (hasBegun) scheduled ??= setImmediate(flush)
      return true
    }
  })
  return () => {
    hasBegun = true
    flush()
  }
}

/**
 * Stops reading a body for which there is no memory: discarding many bodies would cost as much as storing them. The
 * client can read the response until the connection is closed.
 */
const pauseReading = (request: IncomingMessage, removeListeners: () => void): void => {
  removeListeners()
  request.pause()
  request.socket.pause()
}

/**
 * Calls `done` with the whole body of `request`, at most `maxBytes`, or with the reason why it is unavailable. Call
 * once per request. The returned function stops reading; `done` is then not called.
 */
export const collect = (
  request: IncomingMessage,
  maxBytes: number,
  done: (body: Either.Either<Uint8Array, BodyError>) => void
): (() => void) => {
  const accepted = acceptedRequests.get(request)
  const collected = new GrowingBuffer(maxBytes)
  let length = 0
  const removeListeners = () => {
    unwatch()
    request.off("data", onData).off("end", onEnd).off("error", onClosed).off("close", onClosed)
  }
  const stop = () => {
    removeListeners()
    // Discards the rest.
    request.resume()
  }
  const fail = (error: BodyError) => {
    if (error instanceof ServiceUnavailable) pauseReading(request, removeListeners)
    else stop()
    accepted?.permit?.release()
    if (accepted !== undefined && !(error instanceof PayloadTooLarge)) closeAfter(request, accepted.response)
    done(Either.left(error))
  }
  /** True when the budget has room for `size` bytes of this body. */
  const reserve = (size: number): boolean => {
    if (accepted === undefined) return true
    if (accepted.permit !== null) return accepted.permit.resize(size)
    accepted.permit = accepted.bodies.memory.request(accepted.owner, {
      amount: size,
      onRevoked: () => fail(tooManyBodies())
    })
    return accepted.permit.state === "granted"
  }
  const onData = (chunk: Buffer) => {
    length += chunk.length
    if (length > maxBytes) return fail(tooLarge(maxBytes))
    if (!reserve(collected.sizeWith(chunk.length))) return fail(tooManyBodies())
    collected.add(chunk)
  }
  const onEnd = () => {
    stop()
    // A request that is being handled keeps its permit.
    accepted?.permit?.setInUse(true)
    accepted?.onComplete()
    done(Either.right(collected.bytes))
  }
  const onClosed = () => fail(endedEarly())
  const unwatch = watch(request, (reason) => fail(reason === "slow" ? tooSlow() : tooManyBodies()))
  if (Number(request.headers["content-length"]) > maxBytes) fail(tooLarge(maxBytes))
  else if (request.readableEnded || request.destroyed) onClosed()
  else request.on("data", onData).on("end", onEnd).on("error", onClosed).on("close", onClosed)
  return stop
}

/** {@link collect} as an effect. Interruption stops the reading. */
export const readAll = (request: IncomingMessage, maxBytes: number): Effect.Effect<Uint8Array, BodyError> =>
  Effect.async((resume) => {
    const stop = collect(request, maxBytes, resume)
    return Effect.sync(stop)
  })

/**
 * The next bytes of `request`; fails with none at the end of the body. `onWait` receives a function that ends the wait.
 */
const nextPiece = (
  request: IncomingMessage,
  onWait: (fail: ((error: ValidationError) => void) | null) => void
) =>
  Effect.async<Uint8Array, Option.Option<ValidationError>>((resume) => {
    const stop = () => {
      onWait(null)
      request.off("readable", readAvailable).off("end", onEnd).off("error", onClosed).off("close", onClosed)
    }
    const finish = (result: Effect.Effect<Uint8Array, Option.Option<ValidationError>>) => {
      stop()
      resume(result)
    }
    const fail = (error: ValidationError) => finish(Effect.fail(Option.some(error)))
    const onEnd = () => finish(Effect.fail(Option.none()))
    const onClosed = () => (request.readableEnded ? onEnd() : fail(endedEarly()))
    const readAvailable = () => {
      const bytes: unknown = request.read()
      if (types.isUint8Array(bytes)) finish(Effect.succeed(bytes))
    }
    if (request.readableEnded) return onEnd()
    if (request.destroyed) return onClosed()
    onWait(fail)
    request.on("readable", readAvailable).on("end", onEnd).on("error", onClosed).on("close", onClosed)
    readAvailable()
    return Effect.sync(stop)
  })

/** The body as a stream with backpressure. Can be read once, and only this way. */
export const stream = (
  request: IncomingMessage,
  maxBytes: number
): Stream.Stream<Uint8Array, ValidationError | PayloadTooLarge> =>
  Stream.unwrapScoped(
    Effect.gen(function* () {
      let failWaiting: ((error: ValidationError) => void) | null = null
      let slow: ValidationError | null = null
      yield* Effect.acquireRelease(
        Effect.sync(() =>
          watch(request, () => {
            slow = tooSlow()
            failWaiting?.(slow)
          })
        ),
        (unwatch) =>
          Effect.sync(() => {
            unwatch()
            // Discards what was not read.
            request.resume()
          })
      )
      if (Number(request.headers["content-length"]) > maxBytes) return Stream.fail(tooLarge(maxBytes))
      const piece = Effect.suspend(() =>
        slow === null
          ? nextPiece(request, (fail) => {
              failWaiting = fail
            })
          : Effect.fail(Option.some(slow))
      )
      return limitBytes(Stream.repeatEffectOption(piece), maxBytes, tooLarge)
    })
  )

/** `bytes`; fails with `exceeded` as soon as there are more than `maxBytes`. */
export const limitBytes = <E, R, E2>(
  bytes: Stream.Stream<Uint8Array, E, R>,
  maxBytes: number,
  exceeded: (maxBytes: number) => E2
) =>
  Stream.mapAccumEffect(bytes, 0, (before, chunk) => {
    const size = before + chunk.length
    return size > maxBytes ? Effect.fail(exceeded(maxBytes)) : Effect.succeed([size, chunk] as const)
  })
