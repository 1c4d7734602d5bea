/** Reads a form with one document, as a stream. */
import type * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Stream from "effect/Stream"
import { FileTooLarge, type PayloadTooLarge, ValidationError, invalidField } from "../../domain/Errors.ts"
import { SourceName } from "../../domain/knowledge/Source.ts"
import { SourceLabels } from "../../domain/knowledge/SourceScope.ts"
import { limitBytes } from "./RequestBody.ts"
import * as Upload from "./Upload.ts"
import { MiB } from "../../domain/Bytes.ts"

const tooLarge = (maxBytes: number) =>
  new FileTooLarge({ message: `A file may take at most ${maxBytes} bytes.` })

const decodeName = Schema.decodeUnknown(SourceName)
const decodeLabels = Schema.decodeUnknown(Schema.parseJson(SourceLabels))

const invalid = (field: string, message: string) => invalidField([field], message)

/**
 * The form's document, in field `file`. Its file name is the source's name unless the field `name` is sent; the field
 * `labels` is a JSON array. `stage` receives the content, at most `maxFileBytes`; the body may have one MiB more. The
 * scope releases what `stage` acquired.
 */
export const readDocument = <A, E, R>(
  request: HttpServerRequest.HttpServerRequest,
  maxFileBytes: number,
  stage: (
    content: Stream.Stream<Uint8Array, ValidationError | PayloadTooLarge | FileTooLarge>
  ) => Effect.Effect<A, E, R>
) =>
  Effect.gen(function* () {
    if (!/^multipart\/form-data\s*;/iu.test(request.headers["content-type"] ?? "")) {
      return yield* new ValidationError({ message: "Send the form as multipart/form-data." })
    }
    const stageFile = ({ content, name }: Upload.UploadedFile) =>
      Effect.map(stage(limitBytes(content, maxFileBytes, tooLarge)), (bytes) => ({ name, bytes }))
    const limits: Upload.Limits = { maxBytes: maxFileBytes + MiB, maxFiles: 1, field: "file" }
    const { fields, files } = yield* Upload.read(request, stageFile, limits)
    const [file] = files
    if (file === undefined) return yield* invalid("file", "Expected exactly one file")
    const fileName = yield* decodeName(file.name.slice(-200)).pipe(
      Effect.mapError(() => invalid("file", "Expected a file name"))
    )
    const name = yield* decodeName(fields["name"] ?? fileName).pipe(
      Effect.mapError(() => invalid("name", "Expected 1 to 200 characters"))
    )
    const labels = yield* decodeLabels(fields["labels"] ?? "[]").pipe(
      Effect.mapError(() =>
        invalid("labels", "Expected a JSON array of at most 20 labels of 1 to 64 characters")
      )
    )
    return { fields, name, fileName, labels, bytes: file.bytes }
  }).pipe(Effect.withSpan("Form.document"))
