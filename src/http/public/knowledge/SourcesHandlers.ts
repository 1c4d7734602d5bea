import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { Sources } from "../../../usecases/knowledge/Sources.ts"
import { Api } from "../../Api.ts"
import { CurrentKey } from "../../Auth.ts"
import * as Cursor from "../../Cursor.ts"
import * as Form from "../../server/Form.ts"
import { maxUploadBytes, sourceDetail } from "./SourcesApi.ts"

const noVectors = { profile: null, chunks: 0, embedded: 0, error: null }

export const layer = HttpApiBuilder.group(Api, "sources", (handlers) =>
  Effect.gen(function* () {
    const sources = yield* Sources

    return handlers
      .handle("list", ({ urlParams: { limit = 20, cursor, status, type } }) =>
        Effect.gen(function* () {
          const key = yield* CurrentKey
          const list = { scope: key.agentId, route: "sources", filter: { status, type } }
          const { nextCursor, rows } = yield* Cursor.page(list, cursor, (after) =>
            sources.list(key, { limit, after, status, type })
          )
          return { sources: rows, nextCursor }
        })
      )
      .handle("create", ({ payload, headers }) =>
        Effect.flatMap(CurrentKey, (key) => sources.create(key, payload, headers["idempotency-key"]))
      )
      .handleRaw("upload", ({ request }) =>
        Effect.gen(function* () {
          const key = yield* CurrentKey
          const { name, fileName, labels, bytes } = yield* Form.readDocument(
            request,
            maxUploadBytes,
            (content) => sources.stage(content)
          )
          return yield* sources.upload(key, "FILE", { name, fileName, labels, bytes })
        }).pipe(Effect.scoped)
      )
      .handle("get", ({ path }) =>
        Effect.flatMap(CurrentKey, (key) => Effect.map(sources.get(key, path.id), sourceDetail))
      )
      .handle("embedding", ({ path }) =>
        Effect.flatMap(CurrentKey, (key) =>
          Effect.map(sources.get(key, path.id), ({ embedding = noVectors }) => embedding)
        )
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
