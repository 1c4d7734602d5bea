/**
 * The body of a request as it comes, for bodies that are too large to hold: no faster than it is used, bounded, and given
 * up when nothing comes. What is not read is thrown away, so that the client reads its answer.
 */
import { IncomingMessage } from "node:http"
import { types } from "node:util"
import type * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { PayloadTooLarge, ValidationError } from "../domain/Errors.ts"

export interface Limits {
  /** Bytes of the whole body. */
  readonly bytes: number
  /** Longest time in which nothing comes. */
  readonly idle: Duration.DurationInput
}

const cutOff = () => new ValidationError({ message: "The body ended too early." })
const tooLarge = (limit: number) =>
  new PayloadTooLarge({ message: `The body may take at most ${limit} bytes.` })
const silent = () => new ValidationError({ message: "The body stopped coming before its end." })

/** The next bytes of `source`; fails with none at its end. */
const next = (source: IncomingMessage) =>
  Effect.async<Uint8Array, Option.Option<ValidationError>>((resume) => {
    const stop = () => {
      source.off("readable", look).off("end", onEnd).off("error", onCut).off("close", onCut)
    }
    const finish = (result: Effect.Effect<Uint8Array, Option.Option<ValidationError>>) => {
      stop()
      resume(result)
    }
    const onEnd = () => finish(Effect.fail(Option.none()))
    const onCut = () => (source.readableEnded ? onEnd() : finish(Effect.fail(Option.some(cutOff()))))
    const look = () => {
      const bytes: unknown = source.read()
      if (types.isUint8Array(bytes)) finish(Effect.succeed(bytes))
    }
    if (source.readableEnded) return onEnd()
    if (source.destroyed) return onCut()
    source.on("readable", look).on("end", onEnd).on("error", onCut).on("close", onCut)
    look()
    return Effect.sync(stop)
  })

const fromNode = (source: IncomingMessage) =>
  Stream.repeatEffectOption(next(source)).pipe(
    Stream.ensuring(
      Effect.sync(() => {
        source.resume()
      })
    )
  )

const fromWeb = (source: unknown) =>
  source instanceof globalThis.Request && source.body !== null
    ? Stream.fromReadableStream({ evaluate: () => source.body ?? new ReadableStream(), onError: cutOff })
    : Stream.empty

/** The body of `request` within `limits`. To be read once, and nothing else of the body. */
export const body = (
  request: HttpServerRequest.HttpServerRequest,
  { bytes: limit, idle }: Limits
): Stream.Stream<Uint8Array, ValidationError | PayloadTooLarge> => {
  const source = request.source
  const bytes = source instanceof IncomingMessage ? fromNode(source) : fromWeb(source)
  if (Number(request.headers["content-length"]) > limit) {
    return Stream.ensuring(
      Stream.fail(tooLarge(limit)),
      Effect.sync(() => void (source instanceof IncomingMessage && source.resume()))
    )
  }
  return bytes.pipe(
    Stream.timeoutFail(silent, idle),
    Stream.mapAccumEffect(0, (before, chunk) => {
      const size = before + chunk.length
      return size > limit ? Effect.fail(tooLarge(limit)) : Effect.succeed([size, chunk] as const)
    })
  )
}
