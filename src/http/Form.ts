/** A multipart form, parsed from the bounded body of the request. */
import type * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { FileTooLarge, ValidationError } from "../domain/Errors.ts"
import { SourceName } from "../domain/Source.ts"
import { sanitize } from "../domain/Text.ts"

export interface FormFile {
  readonly field: string
  readonly name: string
  /** As declared by the sender; empty when it was not. */
  readonly contentType: string
  readonly bytes: Uint8Array
}

export interface Form {
  /** The last value of each text field. */
  readonly fields: Readonly<Record<string, string>>
  readonly files: ReadonlyArray<FormFile>
}

const malformed = (message: string) => new ValidationError({ message })

const fileOf = (field: string, file: File, limit: number) =>
  file.size > limit
    ? Effect.fail(new FileTooLarge({ message: `A file may take at most ${limit} bytes.` }))
    : Effect.map(
        Effect.promise(() => file.arrayBuffer()),
        (buffer): FormFile => ({
          field: sanitize(field),
          name: sanitize(file.name),
          contentType: file.type,
          bytes: new Uint8Array(buffer)
        })
      )

/**
 * The form of `request`, no file of it over `fileLimit` bytes. A body over the limit of its route is 413 before that, one
 * that cannot be read is the boundary's to answer.
 */
export const read = Effect.fn("Form.read")(function* (
  request: HttpServerRequest.HttpServerRequest,
  fileLimit: number
) {
  const contentType = request.headers["content-type"] ?? ""
  if (!/^multipart\/form-data\s*;/iu.test(contentType)) {
    return yield* malformed("Send the form as multipart/form-data.")
  }
  const body = yield* Effect.catchTag(request.arrayBuffer, "RequestError", Effect.die)
  const data = yield* Effect.tryPromise({
    try: () => new Response(body, { headers: { "content-type": contentType } }).formData(),
    catch: () => malformed("The body is not a well-formed multipart form.")
  })
  const fields: Record<string, string> = {}
  const files: Array<FormFile> = []
  for (const [field, value] of data) {
    if (typeof value === "string") fields[sanitize(field)] = sanitize(value)
    else files.push(yield* fileOf(field, value, fileLimit))
  }
  const form: Form = { fields, files }
  return form
})

const decodeName = Schema.decodeUnknown(SourceName)

const invalid = (field: string, message: string) =>
  new ValidationError({
    message: "The request does not have the expected form.",
    details: { issues: [{ path: [field], message }] }
  })

/** The one document of the form, in field `file`; its file name names the source where the field `name` does not. */
export const document = Effect.fn("Form.document")(function* (
  request: HttpServerRequest.HttpServerRequest,
  fileLimit: number
) {
  const { fields, files } = yield* read(request, fileLimit)
  const [file, ...others] = files
  if (file === undefined || others.length > 0 || file.field !== "file") {
    return yield* invalid("file", "Expected exactly one file")
  }
  const fileName = yield* decodeName(file.name.slice(-200)).pipe(
    Effect.mapError(() => invalid("file", "Expected a file name"))
  )
  const name = yield* decodeName(fields["name"] ?? fileName).pipe(
    Effect.mapError(() => invalid("name", "Expected 1 to 200 characters"))
  )
  return { fields, name, fileName, bytes: file.bytes }
})
