/**
 * A streaming parser for multipart forms (RFC 7578). It reads one part after the other, with only a few chunks in
 * memory. The framework's own parser does not end when a body stops inside a file. `@fastify/busboy` silently drops a
 * part that it cannot read, where this parser refuses the form, and it reports parts before the previous one was read.
 */
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { ValidationError } from "../../domain/Errors.ts"

export interface Part {
  readonly field: string
  /** Null for a field that is not a file. */
  readonly fileName: string | null
  /** The declared type; empty when there is none. */
  readonly contentType: string
}

/** Maximum bytes of the headers of one part. */
const maxHeadBytes = 16_384
/** Maximum parts of one form. */
const maxParts = 64

const malformed = () => new ValidationError({ message: "The body is not a well-formed multipart form." })

const lineBreak = "\r\n"

/** The boundary of a `multipart/form-data` content type; none for other types. */
export const boundaryOf = (contentType: string): Option.Option<string> => {
  if (!/^multipart\/form-data\s*;/iu.test(contentType)) return Option.none()
  const [, quoted, plain] = /;\s*boundary=(?:"([^"]{1,200})"|([^\s;"]{1,200}))/iu.exec(contentType) ?? []
  return Option.fromNullable(quoted ?? plain)
}

/** A parameter's value. Some clients, such as .NET's, write it without quotes. */
const parameter = (disposition: string, name: string): string | null => {
  const pattern = new RegExp(`;\\s*${name}=(?:"((?:[^"\\\\]|\\\\.)*)"|([^\\s";]+))`, "iu")
  const [, quoted, token] = pattern.exec(disposition) ?? []
  if (quoted === undefined) return token ?? null
  // Browsers encode the characters that would end the quoted string.
  return quoted
    .replaceAll(/%22/gu, '"')
    .replaceAll(/%0D|%0A/giu, "")
    .replaceAll(/\\(["\\])/gu, "$1")
}

/** The encoded file name (RFC 5987), if there is one. */
const extendedFileName = (disposition: string): string | null => {
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
  const fileName = extendedFileName(disposition) ?? parameter(disposition, "filename")
  return Option.some({ field, fileName, contentType: headers.get("content-type") ?? "" })
}

/** Buffered bytes, and the source of more. */
class Source<E, R> {
  private buffered = Buffer.alloc(0)
  private readonly pull: Effect.Effect<Chunk.Chunk<Uint8Array>, Option.Option<E>, R>
  constructor(pull: Effect.Effect<Chunk.Chunk<Uint8Array>, Option.Option<E>, R>) {
    this.pull = pull
    // The first delimiter may be at the very beginning.
    this.buffered = Buffer.from(lineBreak)
  }

  /** Waits for more bytes. The form is malformed when the body ends here. */
  private readonly readMore: Effect.Effect<void, E | ValidationError, R> = Effect.suspend(() =>
    this.pull.pipe(
      Effect.mapError((ended) => Option.getOrElse(ended, malformed)),
      Effect.map((chunk) => {
        this.buffered = Buffer.concat([this.buffered, ...chunk])
      })
    )
  )

  /** The bytes before `delimiter`, which is consumed; null if the first `limit` bytes do not contain it. */
  readUntil(delimiter: Buffer, limit: number): Effect.Effect<Buffer | null, E | ValidationError, R> {
    return Effect.suspend(() => {
      const index = this.buffered.indexOf(delimiter)
      if (index > limit || (index < 0 && this.buffered.length > limit + delimiter.length))
        return Effect.succeed(null)
      if (index < 0) return Effect.zipRight(this.readMore, this.readUntil(delimiter, limit))
      const found = this.buffered.subarray(0, index)
      this.buffered = this.buffered.subarray(index + delimiter.length)
      return Effect.succeed(found)
    })
  }

  /** The next `count` bytes. */
  readBytes(count: number): Effect.Effect<Buffer, E | ValidationError, R> {
    return Effect.suspend(() => {
      if (this.buffered.length < count) return Effect.zipRight(this.readMore, this.readBytes(count))
      const bytes = this.buffered.subarray(0, count)
      this.buffered = this.buffered.subarray(count)
      return Effect.succeed(bytes)
    })
  }

  /** The bytes before `delimiter`, in pieces. The last piece consumes the delimiter. */
  content(delimiter: Buffer): Stream.Stream<Uint8Array, E | ValidationError, R> {
    let ended = false
    const piece: Effect.Effect<Uint8Array, Option.Option<E | ValidationError>, R> = Effect.suspend(() => {
      if (ended) return Effect.fail(Option.none())
      const index = this.buffered.indexOf(delimiter)
      ended = index >= 0
      // The end of the buffer may be the start of the delimiter.
      const length = ended ? index : Math.max(0, this.buffered.length - delimiter.length)
      const found = this.buffered.subarray(0, length)
      this.buffered = this.buffered.subarray(ended ? index + delimiter.length : length)
      if (found.length > 0) return Effect.succeed(found)
      return ended
        ? Effect.fail(Option.none())
        : Effect.zipRight(Effect.mapError(this.readMore, Option.some), piece)
    })
    return Stream.repeatEffectOption(piece)
  }
}

/**
 * Runs `each` on every part in turn, with its content. Content that `each` does not read is skipped. Fails when the
 * form is malformed or incomplete.
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
    if ((yield* source.readUntil(delimiter, maxHeadBytes)) === null) return yield* malformed()
    for (let parts = 0; ; parts++) {
      const after = (yield* source.readBytes(2)).toString("latin1")
      if (after === "--") return
      if (after !== lineBreak || parts === maxParts) return yield* malformed()
      const head = yield* source.readUntil(blankLine, maxHeadBytes)
      const part = head === null ? Option.none<Part>() : partOf(head.toString("utf8"))
      if (Option.isNone(part)) return yield* malformed()
      const content = source.content(delimiter)
      yield* each(part.value, content)
      // Skips what `each` left unread.
      yield* Stream.runDrain(content)
    }
  })
