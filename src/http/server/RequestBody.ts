/**
 * How bodies of requests are read, by every route. All bodies that are in memory share one
 * budget, fairly between clients; a body that comes too slowly is given up; and what a client still sends after it was
 * answered is thrown away for a while, so that it can read the answer.
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

export interface BodyLimits {
  /** Bytes of all bodies that are held in memory at the same time. */
  readonly maxBufferedBytes: number
  /** Longest time that a body of any size may take, in milliseconds. */
  readonly graceMillis: number
  /** So many bytes earn another second. */
  readonly minBytesPerSecond: number
  /** Milliseconds for which what still comes is thrown away, once the request has been answered. */
  readonly lingerMillis: number
}

/** What every server goes by. */
export class RequestBodyLimits extends Context.Reference<RequestBodyLimits>()("http/RequestBody/Limits", {
  defaultValue: (): BodyLimits => ({
    maxBufferedBytes: 128 * 1_048_576,
    graceMillis: 10_000,
    minBytesPerSecond: 4_096,
    lingerMillis: 5_000
  })
}) {}

type BodyError = PayloadTooLarge | ValidationError | ServiceUnavailable

const tooLarge = (maxBytes: number) =>
  new PayloadTooLarge({ message: `The body may take at most ${maxBytes} bytes.` })
const cutOff = () => new ValidationError({ message: "The body ended too early." })
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

/** A request that a server has taken. */
interface Taken {
  readonly bodies: RequestBodies
  readonly owner: string
  readonly response: ServerResponse
  /** The part of the memory budget that its body holds. */
  permit: Permit | null
  reader: Reader | null
  /** Called once its body is there as a whole. */
  readonly onComplete: () => void
}

const taken = new WeakMap<IncomingMessage, Taken>()

/**
 * Has the connection close after the answer. While the client still sends, it is closed for writing alone: closed for both,
 * the client's system would throw the answer away unread.
 */
export const closeAfter = (request: IncomingMessage, response: ServerResponse): void => {
  response.shouldKeepAlive = false
  const { socket } = request
  if (request.complete || socket.destroyed) return
  Object.defineProperty(socket, "destroySoon", { configurable: true, value: () => socket.end() })
}

/** The bodies of one server's requests. */
export class RequestBodies {
  readonly memory: FairLimiter
  readonly #limits: BodyLimits
  readonly #readers = new Set<Reader>()
  /** Requests that were answered before their bodies had come, and since when, in milliseconds. */
  readonly #lingering = new Map<IncomingMessage, number>()

  constructor(limits: BodyLimits) {
    this.#limits = limits
    this.memory = new FairLimiter({ name: "request-body-bytes", permits: limits.maxBufferedBytes })
  }

  /**
   * From now on the body of `request` is read within the limits, on behalf of `owner`. Returns what has to be called when
   * the request is begun; before that it is not read.
   */
  take(
    request: IncomingMessage,
    response: ServerResponse,
    owner: string,
    onComplete: () => void
  ): () => void {
    taken.set(request, { bodies: this, owner, response, permit: null, reader: null, onComplete })
    return request.complete ? () => {} : joinPieces(request)
  }

  /** Stops reading the body, if it is being read, with 503. */
  revoke(request: IncomingMessage): void {
    taken.get(request)?.reader?.giveUp("revoked")
  }

  /** The body is not needed any more. */
  release(request: IncomingMessage): void {
    taken.get(request)?.permit?.release()
  }

  /** The request has been answered, or its client has gone. */
  end(request: IncomingMessage): void {
    this.release(request)
    if (!request.complete && !request.socket.destroyed) this.#lingering.set(request, 0)
  }

  /** True while {@link sweep} has to be called. */
  get isBusy(): boolean {
    return this.#readers.size + this.#lingering.size > 0
  }

  /** Gives up what has come too slowly. `elapsed`: milliseconds since the last call. */
  sweep(elapsed: number): void {
    for (const reader of this.#readers) {
      const { bytesBefore, request } = reader
      // What has come and is not read is not the client's delay.
      if (request.complete || request.readableLength > 0) continue
      reader.waitedMillis += elapsed
      const earned = ((request.socket.bytesRead - bytesBefore) / this.#limits.minBytesPerSecond) * 1_000
      if (reader.waitedMillis > this.#limits.graceMillis + earned) reader.giveUp("slow")
    }
    for (const [request, millis] of this.#lingering) {
      if (request.complete || request.socket.destroyed) this.#lingering.delete(request)
      else if (millis < this.#limits.lingerMillis) this.#lingering.set(request, millis + elapsed)
      else {
        this.#lingering.delete(request)
        request.socket.destroy()
      }
    }
  }

  watch(reader: Reader): void {
    this.#readers.add(reader)
  }

  unwatch(reader: Reader): void {
    this.#readers.delete(reader)
  }
}

/** Tells the server of the request that its body is read from now on; what is returned tells that it is not any more. */
const watch = (request: IncomingMessage, giveUp: Reader["giveUp"]): (() => void) => {
  const of = taken.get(request)
  if (of === undefined) return () => {}
  const reader: Reader = { request, bytesBefore: request.socket.bytesRead, waitedMillis: 0, giveUp }
  of.bodies.watch(reader)
  of.reader = reader
  return () => {
    of.bodies.unwatch(reader)
    of.reader = null
  }
}

/** Bytes of pieces that are joined before they are handed on. */
const maxJoined = 16_384
/** Pieces of this size are handed on as they are. */
const minPiece = 1_024

/**
 * Joins small pieces of the body before they are passed on. Node makes a buffer of its own of each chunk, which takes some 250
 * bytes even for a single one, and a client may send thousands of them in one packet: unread, they would take forty times the
 * memory of what was sent. What is returned has to be called when the request is begun.
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
      // After all that the packet brings.
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
 * Calls `done` with the body of `request` as a whole, at most `maxBytes`, or with why it cannot be had. To be called once for
 * a request. What is returned stops the reading, and `done` is not called then.
 */
export const collect = (
  request: IncomingMessage,
  maxBytes: number,
  done: (body: Either.Either<Uint8Array, BodyError>) => void
): (() => void) => {
  const of = taken.get(request)
  const collected = new GrowingBuffer(maxBytes)
  let length = 0
  const stop = () => {
    unwatch()
    request.off("data", onData).off("end", onEnd).off("error", onCut).off("close", onCut)
    // The rest is discarded.
    request.resume()
  }
  const fail = (error: BodyError) => {
    stop()
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
    // What is worked on is not taken back.
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

/** The next bytes of `request`; fails with none at their end. `onWait` is told how to end the waiting. */
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

/** The body as it comes, no faster than it is used. To be read once, and nothing else of the body. */
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
            // What is not read is thrown away.
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

/** `bytes`, failing as soon as there are more than `maxBytes`. */
export const bounded = <E, R>(bytes: Stream.Stream<Uint8Array, E, R>, maxBytes: number) =>
  Stream.mapAccumEffect(bytes, 0, (before, chunk) => {
    const size = before + chunk.length
    return size > maxBytes ? Effect.fail(tooLarge(maxBytes)) : Effect.succeed([size, chunk] as const)
  })
