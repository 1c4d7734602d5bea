import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import type * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { AgentKey } from "../../domain/Access.ts"
import { ValidationError } from "../../domain/Errors.ts"
import { type Source, SourceName, type SourceStatus, type SourceType } from "../../domain/Source.ts"
import { Sources } from "../../usecases/Sources.ts"
import { Api } from "../Api.ts"
import { CurrentKey } from "../Auth.ts"
import * as Cursor from "../Cursor.ts"
import * as Form from "../Form.ts"
import { uploadLimit } from "./SourcesApi.ts"

interface ListParams {
  readonly limit?: number
  readonly cursor?: string
  readonly status?: SourceStatus | undefined
  readonly type?: SourceType | undefined
}

/** Uploads in memory at the same time; the others wait for their turn. */
const uploadsAtOnce = 4

const decodeName = Schema.decodeUnknown(SourceName)

const invalid = (field: string, message: string) =>
  new ValidationError({
    message: "The request does not have the expected form.",
    details: { issues: [{ path: [field], message }] }
  })

/** The one document of the form; its file name names the source where `name` does not. */
const document = Effect.fn("SourcesHandlers.document")(function* (
  request: HttpServerRequest.HttpServerRequest
) {
  const { fields, files } = yield* Form.read(request, uploadLimit)
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
  return { name, fileName, bytes: file.bytes }
})

const detail = ({ lastError, ...source }: Source) => ({ ...source, error: lastError })

export const layer = HttpApiBuilder.group(Api, "sources", (handlers) =>
  Effect.gen(function* () {
    const sources = yield* Sources
    const uploads = yield* Effect.makeSemaphore(uploadsAtOnce)

    const list = Effect.fn("SourcesHandlers.list")(function* (
      key: AgentKey,
      { limit = 20, cursor, status, type }: ListParams
    ) {
      const place = { scope: key.agentId, route: "sources", filter: { status, type } }
      const after = yield* Cursor.open(place, cursor)
      const { rows, next } = yield* sources.list(key, { limit, after, status, type })
      return { sources: rows, nextCursor: yield* Cursor.seal(place, next) }
    })

    return handlers
      .handle("list", ({ urlParams }) => Effect.flatMap(CurrentKey, (key) => list(key, urlParams)))
      .handle("create", ({ payload, headers }) =>
        Effect.flatMap(CurrentKey, (key) => sources.create(key, payload, headers["idempotency-key"]))
      )
      .handleRaw("upload", ({ request }) =>
        Effect.gen(function* () {
          const key = yield* CurrentKey
          return yield* sources.upload(key, "FILE", yield* document(request))
        }).pipe(uploads.withPermits(1))
      )
      .handle("get", ({ path }) =>
        Effect.flatMap(CurrentKey, (key) => Effect.map(sources.get(key, path.id), detail))
      )
      .handle("patch", ({ path, payload }) =>
        Effect.flatMap(CurrentKey, (key) => sources.patch(key, path.id, payload))
      )
      .handle("remove", ({ path: { id } }) =>
        Effect.gen(function* () {
          yield* sources.remove(yield* CurrentKey, id)
          return { id, deleted: true } as const
        })
      )
      .handle("sync", ({ path, payload }) =>
        Effect.flatMap(CurrentKey, (key) => sources.sync(key, path.id, payload))
      )
  })
)
