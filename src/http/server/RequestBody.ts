/**
 * Reads the bodies of all requests. Bodies in memory share one budget, fairly between clients. A body that arrives too
 * slowly is given up. Bytes that a client sends after its response are discarded for a while, so that it can read the
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
  /** Time that a body of any size may take, in milliseconds. */
  readonly graceMillis: number
  /** Each such number of bytes allows another second. */
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
export const cutOff = () => new ValidationError({ message: "The body ended too early." })
const tooSlow = () => new ValidationError({ message: "The body comes too slowly, or has stopped coming." })
const tooMany = () =>
  new ServiceUnavailable({
    message: "The server is reading too many bodies. Try again later.",
    details: { retryAfterSeconds: 1 }
  })

/** A body that is being read. */
interface Reader {
  readonly request: IncomingMessage
  readonly bytesBefore: number
  waitedMillis: number
  readonly giveUp: (why: "slow" | "revoked") => void
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

/** Slow bodies that are given up without letting other work go first. */
const maxGivenUp = 16

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
  take(
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
    acceptedRequests.get(request)?.reader?.giveUp("revoked")
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
  get isBusy(): boolean {
    return this.#readers.size + this.#lingering.size > 0
  }

  /** Gives up bodies that arrive too slowly. `elapsed`: milliseconds since the last call. */
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
    this.#giveUp(slow)
    for (const [request, millis] of this.#lingering) {
      if (request.complete || request.socket.destroyed) this.#lingering.delete(request)
      else if (millis < this.#limits.lingerMillis) this.#lingering.set(request, millis + elapsed)
      else {
        this.#lingering.delete(request)
        request.socket.destroy()
      }
    }
  }

  /** A few at a time: bodies that came together end together, and each answer takes about half a millisecond. */
  #giveUp(slow: Array<Reader>): void {
    for (const reader of slow.splice(0, maxGivenUp)) if (this.#readers.has(reader)) reader.giveUp("slow")
    if (slow.length > 0) setImmediate(() => this.#giveUp(slow))
  }

  watch(reader: Reader): void {
    this.#readers.add(reader)
  }

  unwatch(reader: Reader): void {
    this.#readers.delete(reader)
  }
}

/** Registers the reader of a body with the request's server. Returns a function that removes it. */
const watch = (request: IncomingMessage, giveUp: Reader["giveUp"]): (() => void) => {
  const of = acceptedRequests.get(request)
  if (of === undefined) return () => {}
  const reader: Reader = { request, bytesBefore: request.socket.bytesRead, waitedMillis: 0, giveUp }
  of.bodies.watch(reader)
  of.reader = reader
  return () => {
    of.bodies.unwatch(reader)
    of.reader = null
  }
}

/** Bytes of joined pieces after which they are passed on. */
const maxJoined = 16_384
/** Pieces of at least this size are passed on unjoined. */
const minPiece = 1_024

/**
 * Joins small pieces of the body before they are passed on. Node allocates a buffer of about 250 bytes for each chunk,
 * even for a single byte. A client may send thousands of them in one packet: unread, they would take forty times the
 * memory of what was sent. The returned function must be called when the request begins.
 */
const joinPieces = (request: IncomingMessage): (() => void) => {
  const { push } = request
  const pieces = new GrowingBuffer(Number.POSITIVE_INFINITY)
  let begun = false
  let scheduled: NodeJS.Immediate | null = null
  const pass = (piece: unknown): boolean => Boolean(Reflect.apply(push, request, [piece]))
  const flush = (): boolean => {
    if (scheduled !== null) clearImmediate(scheduled)
    scheduled = null
    return pieces.length === 0 || pass(pieces.take())
  }
  Object.defineProperty(request, "push", {
    value: (piece: unknown): boolean => {
      if (!Buffer.isBuffer(piece)) {
        flush()
        return pass(piece)
      }
      if (begun && pieces.length === 0 && piece.length >= minPiece) return pass(piece)
      pieces.add(piece)
      if (pieces.length >= maxJoined) return flush()
      // After all chunks of the packet.
      if (begun) scheduled ??= setImmediate(flush)
      return true
    }
  })
  return () => {
    begun = true
    flush()
  }
}

/**
 * Reads nothing more of a body for which there is no memory: to discard a flood costs as much as to take it. The client can
 * read the response until the connection is closed.
 */
const leaveUnread = (request: IncomingMessage, leave: () => void): void => {
  leave()
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
  const of = acceptedRequests.get(request)
  const collected = new GrowingBuffer(maxBytes)
  let length = 0
  const leave = () => {
    unwatch()
    request.off("data", onData).off("end", onEnd).off("error", onCut).off("close", onCut)
  }
  const stop = () => {
    leave()
    // Discards the rest.
    request.resume()
  }
  const fail = (error: BodyError) => {
    if (error instanceof ServiceUnavailable) leaveUnread(request, leave)
    else stop()
    of?.permit?.release()
    if (of !== undefined && !(error instanceof PayloadTooLarge)) closeAfter(request, of.response)
    done(Either.left(error))
  }
  /** True when the budget has room for `size` bytes of this body. */
  const hold = (size: number): boolean => {
    if (of === undefined) return true
    if (of.permit !== null) return of.permit.resize(size)
    of.permit = of.bodies.memory.request(of.owner, { amount: size, onRevoked: () => fail(tooMany()) })
    return of.permit.state === "granted"
  }
  const onData = (chunk: Buffer) => {
    length += chunk.length
    if (length > maxBytes) return fail(tooLarge(maxBytes))
    if (!hold(collected.sizeWith(chunk.length))) return fail(tooMany())
    collected.add(chunk)
  }
  const onEnd = () => {
    stop()
    // A request that is being handled keeps its permit.
    of?.permit?.setInUse(true)
    of?.onComplete()
    done(Either.right(collected.bytes))
  }
  const onCut = () => fail(cutOff())
  const unwatch = watch(request, (why) => fail(why === "slow" ? tooSlow() : tooMany()))
  if (Number(request.headers["content-length"]) > maxBytes) fail(tooLarge(maxBytes))
  else if (request.readableEnded || request.destroyed) onCut()
  else request.on("data", onData).on("end", onEnd).on("error", onCut).on("close", onCut)
  return stop
}

/** {@link collect} as an effect. */
export const whole = (request: IncomingMessage, maxBytes: number): Effect.Effect<Uint8Array, BodyError> =>
  Effect.async((resume) => {
    const stop = collect(request, maxBytes, resume)
    return Effect.sync(stop)
  })

/**
 * The next bytes of `request`; fails with none at the end of the body. `onWait` receives a function that ends the wait.
 */
const next = (request: IncomingMessage, onWait: (fail: ((error: ValidationError) => void) | null) => void) =>
  Effect.async<Uint8Array, Option.Option<ValidationError>>((resume) => {
    const stop = () => {
      onWait(null)
      request.off("readable", look).off("end", onEnd).off("error", onCut).off("close", onCut)
    }
    const finish = (result: Effect.Effect<Uint8Array, Option.Option<ValidationError>>) => {
      stop()
      resume(result)
    }
    const fail = (error: ValidationError) => finish(Effect.fail(Option.some(error)))
    const onEnd = () => finish(Effect.fail(Option.none()))
    const onCut = () => (request.readableEnded ? onEnd() : fail(cutOff()))
    const look = () => {
      const bytes: unknown = request.read()
      if (types.isUint8Array(bytes)) finish(Effect.succeed(bytes))
    }
    if (request.readableEnded) return onEnd()
    if (request.destroyed) return onCut()
    onWait(fail)
    request.on("readable", look).on("end", onEnd).on("error", onCut).on("close", onCut)
    look()
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
          ? next(request, (fail) => {
              failWaiting = fail
            })
          : Effect.fail(Option.some(slow))
      )
      return bounded(Stream.repeatEffectOption(piece), maxBytes)
    })
  )

/** `bytes`; fails as soon as there are more than `maxBytes`. */
export const bounded = <E, R>(bytes: Stream.Stream<Uint8Array, E, R>, maxBytes: number) =>
  Stream.mapAccumEffect(bytes, 0, (before, chunk) => {
    const size = before + chunk.length
    return size > maxBytes ? Effect.fail(tooLarge(maxBytes)) : Effect.succeed([size, chunk] as const)
  })
