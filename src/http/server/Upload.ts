/** A form with files that are taken in as they come: what is refused is said at once, the rest is skipped. */
import { IncomingMessage } from "node:http"
import type * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { largestAttachment, maxAttachments } from "../../domain/channels/Attachment.ts"
import { type PayloadTooLarge, ValidationError } from "../../domain/Errors.ts"
import { sanitize } from "../../domain/Text.ts"
import { jsonLimit, MiB } from "../Envelope.ts"
import { GrowingBuffer } from "./GrowingBuffer.ts"
import * as Multipart from "./Multipart.ts"
import * as RequestBody from "./RequestBody.ts"
import { withSlot } from "./UploadSlots.ts"

/** One file of the form, while it comes. */
export interface UploadedFile {
  readonly name: string
  /** As declared; empty when it was not. */
  readonly contentType: string
  readonly content: Stream.Stream<Uint8Array, ValidationError | PayloadTooLarge>
}

/** What a form may hold. */
export interface Limits {
  /** Bytes of the whole body. */
  readonly bytes: number
  readonly files: number
  /** The field that its files have. */
  readonly field: string
}

/** Ten of the largest files, the fields, and what stands between them. */
const attachments: Limits = {
  bytes: maxAttachments * largestAttachment + jsonLimit + MiB,
  files: maxAttachments,
  field: "files"
}
/** Notices a body that has stopped coming. */
const idleTimeout = Duration.seconds(30)
/** Shorter than what the listener gives a request as a whole. */
const uploadTimeout = Duration.minutes(4)

const maxNameCharacters = 255

const invalid = (field: string, message: string) =>
  new ValidationError({
    message: "The request does not have the expected form.",
    details: { issues: [{ path: [field], message }] }
  })

const cutOff = () => new ValidationError({ message: "The body ended too early." })
const tooSlow = () => new ValidationError({ message: "The upload took too long." })

const nameOf = (name: string) => sanitize(name.slice(-maxNameCharacters)) || "file"

/** As it comes; what a host hands over instead of a connection is bounded alike. */
const bodyOf = (request: HttpServerRequest.HttpServerRequest, maxBytes: number): UploadedFile["content"] => {
  const { source } = request
  if (source instanceof IncomingMessage) return RequestBody.stream(source, maxBytes)
  const sent =
    source instanceof globalThis.Request && source.body !== null
      ? Stream.fromReadableStream({ evaluate: () => source.body ?? new ReadableStream(), onError: cutOff })
      : Stream.empty
  return RequestBody.bounded(Stream.timeoutFail(sent, tooSlow, idleTimeout), maxBytes)
}

/** The text of a field, of which `room` bytes may come. */
const textOf = (field: string, content: UploadedFile["content"], room: number) =>
  content.pipe(
    Stream.runFoldEffect(new GrowingBuffer(room), (text, chunk) => {
      if (text.length + chunk.length > room)
        return Effect.fail(invalid(field, "The fields of the form are too long"))
      text.add(chunk)
      return Effect.succeed(text)
    }),
    Effect.map((text) => ({ size: text.length, text: sanitize(new TextDecoder().decode(text.bytes)) }))
  )

/**
 * The fields of the form, the last value of each, and what `take` made of each of its files, in their order: by default at
 * most ten attachments; the body of the request must not have been read. The scope ends the reading, and is what `take` may hang on.
 */
export const read = <A, E, R>(
  request: HttpServerRequest.HttpServerRequest,
  take: (file: UploadedFile) => Effect.Effect<A, E, R>,
  limits: Limits = attachments
) =>
  Effect.gen(function* () {
    const boundary = Multipart.boundaryOf(request.headers["content-type"] ?? "")
    const fields: Record<string, string> = {}
    const files: Array<A> = []
    let room = jsonLimit
    if (Option.isNone(boundary)) return yield* invalid("content-type", "Expected a boundary")
    yield* Multipart.forEachPart(bodyOf(request, limits.bytes), boundary.value, (part, content) =>
      Effect.gen(function* () {
        const { contentType, field, fileName } = part
        if (fileName === null) {
          const { size, text } = yield* textOf(field, content, room)
          room -= size
          fields[sanitize(field)] = text
          return
        }
        // What a browser sends where no file was chosen.
        if (fileName === "") return
        if (field !== limits.field)
          return yield* invalid(field, `Expected files in the field ${limits.field}`)
        if (files.length === limits.files) {
          return yield* invalid(limits.field, `Expected at most ${limits.files} files`)
        }
        files.push(yield* take({ name: nameOf(fileName), contentType, content }))
      })
    )
    return { fields, files }
  }).pipe(
    Effect.timeoutFail({ duration: uploadTimeout, onTimeout: tooSlow }),
    withSlot,
    Effect.withSpan("Upload.read")
  )
