/**
 * A multipart form read as it comes (RFC 7578): one part after the other, never more of it in memory than a few chunks. The
 * framework's own parser does not end when a body stops inside a file. `@fastify/busboy` drops a part that it cannot read and
 * goes on without a sign of it, where this one refuses the form, and it tells of the next parts before the last one is read.
 */
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { ValidationError } from "../../domain/Errors.ts"

export interface Part {
  readonly field: string
  /** Null for a field that is no file. */
  readonly fileName: string | null
  /** As declared; empty when it was not. */
  readonly contentType: string
}

/** Longest head of one part, in bytes. */
const headLimit = 16_384
/** Most parts of one form. */
const partLimit = 64

const malformed = () => new ValidationError({ message: "The body is not a well-formed multipart form." })

const lineBreak = "\r\n"

/** The delimiter that a `multipart/form-data` content type names; none for any other. */
export const boundaryOf = (contentType: string): Option.Option<string> => {
  if (!/^multipart\/form-data\s*;/iu.test(contentType)) return Option.none()
  const [, quoted, plain] = /;\s*boundary=(?:"([^"]{1,200})"|([^\s;"]{1,200}))/iu.exec(contentType) ?? []
  return Option.fromNullable(quoted ?? plain)
}

const parameter = (disposition: string, name: string): string | null => {
  const [, value] = new RegExp(`;\\s*${name}="((?:[^"\\\\]|\\\\.)*)"`, "iu").exec(disposition) ?? []
  // What browsers write for the characters that would end the quotation.
  return value === undefined
    ? null
    : value
        .replaceAll(/%22/gu, '"')
        .replaceAll(/%0D|%0A/giu, "")
        .replaceAll(/\\(["\\])/gu, "$1")
}

const extended = (disposition: string): string | null => {
  const [, value] = /;\s*filename\*=utf-8''([^;\s]+)/iu.exec(disposition) ?? []
  if (value === undefined) return null
  try {
    return decodeURIComponent(value)
  } catch {
    return null
  }
}

const partOf = (head: string): Option.Option<Part> => {
  const headers = new Map(
    head.split(lineBreak).map((line) => {
      const [name = "", ...rest] = line.split(":")
      return [name.trim().toLowerCase(), rest.join(":").trim()] as const
    })
  )
  const disposition = headers.get("content-disposition") ?? ""
  const field = parameter(disposition, "name")
  if (!/^form-data\s*(?:;|$)/iu.test(disposition) || field === null) return Option.none()
  const fileName = extended(disposition) ?? parameter(disposition, "filename")
  return Option.some({ field, fileName, contentType: headers.get("content-type") ?? "" })
}

/** What has come and is not used up, and how to get more. */
class Source<E, R> {
  private held = Buffer.alloc(0)
  private readonly pull: Effect.Effect<Chunk.Chunk<Uint8Array>, Option.Option<E>, R>
  constructor(pull: Effect.Effect<Chunk.Chunk<Uint8Array>, Option.Option<E>, R>) {
    this.pull = pull
    // The first delimiter may stand at the very beginning.
    this.held = Buffer.from(lineBreak)
  }

  /** Waits for more; a body that ends here is malformed. */
  private readonly more: Effect.Effect<void, E | ValidationError, R> = Effect.suspend(() =>
    this.pull.pipe(
      Effect.mapError((ended) => Option.getOrElse(ended, malformed)),
      Effect.map((chunk) => {
        this.held = Buffer.concat([this.held, ...chunk])
      })
    )
  )

  /** Everything before `delimiter`, which is used up too; null once more than `limit` came without it. */
  upTo(delimiter: Buffer, limit: number): Effect.Effect<Buffer | null, E | ValidationError, R> {
    return Effect.suspend(() => {
      const at = this.held.indexOf(delimiter)
      if (at > limit || (at < 0 && this.held.length > limit + delimiter.length)) return Effect.succeed(null)
      if (at < 0) return Effect.zipRight(this.more, this.upTo(delimiter, limit))
      const found = this.held.subarray(0, at)
      this.held = this.held.subarray(at + delimiter.length)
      return Effect.succeed(found)
    })
  }

  /** `count` bytes. */
  take(count: number): Effect.Effect<Buffer, E | ValidationError, R> {
    return Effect.suspend(() => {
      if (this.held.length < count) return Effect.zipRight(this.more, this.take(count))
      const taken = this.held.subarray(0, count)
      this.held = this.held.subarray(count)
      return Effect.succeed(taken)
    })
  }

  /** The bytes before `delimiter`, in pieces; the last piece consumes the delimiter. */
  content(delimiter: Buffer): Stream.Stream<Uint8Array, E | ValidationError, R> {
    let ended = false
    const piece: Effect.Effect<Uint8Array, Option.Option<E | ValidationError>, R> = Effect.suspend(() => {
      if (ended) return Effect.fail(Option.none())
      const at = this.held.indexOf(delimiter)
      ended = at >= 0
      // The end of what is held may be the beginning of the delimiter.
      const length = ended ? at : Math.max(0, this.held.length - delimiter.length)
      const found = this.held.subarray(0, length)
      this.held = this.held.subarray(ended ? at + delimiter.length : length)
      if (found.length > 0) return Effect.succeed(found)
      return ended
        ? Effect.fail(Option.none())
        : Effect.zipRight(Effect.mapError(this.more, Option.some), piece)
    })
    return Stream.repeatEffectOption(piece)
  }
}

/**
 * Runs `each` on every part in turn, with its content; what `each` leaves unread is skipped. Fails when the form is
 * malformed or ends too early.
 */
export const forEachPart = <E, R, E2, R2>(
  body: Stream.Stream<Uint8Array, E, R>,
  boundary: string,
  each: (
    part: Part,
    content: Stream.Stream<Uint8Array, E | ValidationError, R>
  ) => Effect.Effect<void, E2, R2>
): Effect.Effect<void, E | E2 | ValidationError, R | R2 | Scope.Scope> =>
  Effect.gen(function* () {
    const source = new Source(yield* Stream.toPull(body))
    const delimiter = Buffer.from(`${lineBreak}--${boundary}`)
    const blankLine = Buffer.from(lineBreak + lineBreak)
    if ((yield* source.upTo(delimiter, headLimit)) === null) return yield* malformed()
    for (let parts = 0; ; parts++) {
      const after = (yield* source.take(2)).toString("latin1")
      if (after === "--") return
      if (after !== lineBreak || parts === partLimit) return yield* malformed()
      const head = yield* source.upTo(blankLine, headLimit)
      const part = head === null ? Option.none<Part>() : partOf(head.toString("utf8"))
      if (Option.isNone(part)) return yield* malformed()
      const content = source.content(delimiter)
      yield* each(part.value, content)
      // Goes on where `each` stopped.
      yield* Stream.runDrain(content)
    }
  })
