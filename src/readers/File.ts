/** Source types FILE and IMAGE: one document or image, uploaded or fetched. The bytes decide what it is, not the type. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { ArtifactStore } from "../capabilities/ArtifactStore.ts"
import type { ArtifactRef, FileConfig, UploadedFileConfig } from "../domain/knowledge/Source.ts"
import { fetchOk } from "./Fetch.ts"
import { documentOf } from "./Page.ts"
import { readBytes } from "./Picture.ts"
import { ReaderError, permanentError } from "../capabilities/SourceReaders.ts"
import type { ReadDocument, Reader, ReaderServices } from "./Reader.ts"

/** The bytes of an uploaded original. */
export const loadArtifact = Effect.fn("File.loadArtifact")(function* (ref: ArtifactRef) {
  const store = yield* ArtifactStore
  const bytes = yield* store.get(ref).pipe(
    Effect.mapError(
      () =>
        new ReaderError({
          code: "artifact_unavailable",
          message: "The uploaded file cannot be loaded now.",
          retryable: true
        })
    )
  )
  return yield* Option.match(bytes, {
    onSome: Effect.succeed,
    onNone: () => permanentError("artifact_missing", "The uploaded file is no longer there. Upload it again.")
  })
})

/** The URI of an uploaded document within its source. */
export const uploadUri = (name: string): string => `upload:${name}`

const readUpload = Effect.fn("File.readUpload")(function* ({
  artifact,
  fileName
}: typeof UploadedFileConfig.Type) {
  const bytes = yield* loadArtifact(artifact)
  const parsed = yield* readBytes({ bytes, fileName })
  return documentOf(uploadUri(fileName), parsed, {})
})

const readFetched = Effect.fn("File.readFetched")(function* ({ fileUrl, fileName }: typeof FileConfig.Type) {
  const { url, body, headers } = yield* fetchOk("file", fileUrl)
  const contentType = headers["content-type"]
  const parsed = yield* readBytes({
    bytes: body,
    url,
    ...(fileName === undefined ? {} : { fileName }),
    ...(contentType === undefined ? {} : { contentType })
  })
  // The configured address, not the one after redirects, because download links often redirect to addresses that
  // expire.
  return documentOf(fileUrl, parsed, headers)
})

const readFile = (
  config: typeof FileConfig.Type | typeof UploadedFileConfig.Type
): Effect.Effect<ReadDocument, ReaderError, ReaderServices> =>
  "artifact" in config ? readUpload(config) : readFetched(config)

export const reader: Reader<typeof FileConfig.Type | typeof UploadedFileConfig.Type> = {
  read: (config) => Stream.fromEffect(readFile(config))
}
