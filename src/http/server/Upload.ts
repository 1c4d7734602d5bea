/** Reads a form with files as a stream. An error is reported at once, and the rest of the body is skipped. */
import { IncomingMessage } from "node:http"
import type * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { largestAttachment, maxAttachments } from "../../domain/channels/Attachment.ts"
import { type PayloadTooLarge, ValidationError, invalidField } from "../../domain/Errors.ts"
import { sanitize } from "../../domain/Text.ts"
import { maxJsonBytes } from "../Envelope.ts"
import { GrowingBuffer } from "./GrowingBuffer.ts"
import * as Multipart from "./Multipart.ts"
import * as RequestBody from "./RequestBody.ts"
import { withSlot } from "./UploadSlots.ts"
import { MiB } from "../../domain/Bytes.ts"

/** One file of the form, while it arrives. */
export interface UploadedFile {
  readonly name: string
  /** The declared type; empty when there is none. */
  readonly contentType: string
  readonly content: Stream.Stream<Uint8Array, ValidationError | PayloadTooLarge>
}

/** Limits of a form. */
export interface Limits {
  /** For the whole body. */
  readonly maxBytes: number
  readonly maxFiles: number
  /** Name of the field with files. */
  readonly field: string
}

/** Ten files of maximum size, the fields, and the delimiters. */
const attachments: Limits = {
  maxBytes: maxAttachments * largestAttachment + maxJsonBytes + MiB,
  maxFiles: maxAttachments,
  field: "files"
}
/** Time-out between two chunks of a body. */
const idleTimeout = Duration.seconds(30)
/** Shorter than the listener's time-out for a whole request. */
const uploadTimeout = Duration.minutes(4)

const maxNameCharacters = 255

const invalid = (field: string, message: string) => invalidField([field], message)

const tooSlow = () => new ValidationError({ message: "The upload took too long." })

const nameOf = (name: string) => sanitize(name.slice(-maxNameCharacters)) || "file"

/** The body as a stream. A body passed by a host, without a connection, has the same limit. */
const bodyOf = (request: HttpServerRequest.HttpServerRequest, maxBytes: number): UploadedFile["content"] => {
  const { source } = request
  if (source instanceof IncomingMessage) return RequestBody.stream(source, maxBytes)
  const sent =
    source instanceof globalThis.Request && source.body !== null
      ? Stream.fromReadableStream({
          evaluate: () => source.body ?? new ReadableStream(),
          onError: RequestBody.endedEarly
        })
      : Stream.empty
  return RequestBody.limitBytes(
    Stream.timeoutFail(sent, tooSlow, idleTimeout),
    maxBytes,
    RequestBody.tooLarge
  )
}

/** The text of a field, at most `maxBytes`. */
const textOf = (field: string, content: UploadedFile["content"], maxBytes: number) =>
  content.pipe(
    Stream.runFoldEffect(new GrowingBuffer(maxBytes), (text, chunk) => {
      if (text.length + chunk.length > maxBytes)
        return Effect.fail(invalid(field, "The fields of the form are too long"))
      text.add(chunk)
      return Effect.succeed(text)
    }),
    Effect.map((text) => ({ size: text.length, text: sanitize(new TextDecoder().decode(text.bytes)) }))
  )

/**
 * The form's fields, the last value of each, and the results of `onFile` for its files, in order. By default at most
 * ten attachments. The request's body must not have been read. The scope ends the reading and releases what `onFile`
 * acquired.
 */
export const read = <A, E, R>(
  request: HttpServerRequest.HttpServerRequest,
  onFile: (file: UploadedFile) => Effect.Effect<A, E, R>,
  limits: Limits = attachments
) =>
  Effect.gen(function* () {
    const boundary = Multipart.boundaryOf(request.headers["content-type"] ?? "")
    const fields: Record<string, string> = {}
    const files: Array<A> = []
    let remainingBytes = maxJsonBytes
    if (Option.isNone(boundary)) return yield* invalid("content-type", "Expected a boundary")
    yield* Multipart.forEachPart(bodyOf(request, limits.maxBytes), boundary.value, (part, content) =>
      Effect.gen(function* () {
        const { contentType, field, fileName } = part
        if (fileName === null) {
          const { size, text } = yield* textOf(field, content, remainingBytes)
          remainingBytes -= size
          fields[sanitize(field)] = text
          return
        }
        // Browsers send an empty file when none was chosen.
        if (fileName === "") return
        if (field !== limits.field)
          return yield* invalid(field, `Expected files in the field ${limits.field}`)
        if (files.length === limits.maxFiles) {
          return yield* invalid(limits.field, `Expected at most ${limits.maxFiles} files`)
        }
        files.push(yield* onFile({ name: nameOf(fileName), contentType, content }))
      })
    )
    return { fields, files }
  }).pipe(
    Effect.timeoutFail({ duration: uploadTimeout, onTimeout: tooSlow }),
    withSlot,
    Effect.withSpan("Upload.read")
  )
