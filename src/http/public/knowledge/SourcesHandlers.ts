import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import type { AgentKey } from "../../../domain/accounts/Access.ts"
import { AuditTrail } from "../../../usecases/accounts/AuditTrail.ts"
import { type Created, Sources } from "../../../usecases/knowledge/Sources.ts"
import { Api } from "../../Api.ts"
import { CurrentKey } from "../../Auth.ts"
import * as Cursor from "../../Cursor.ts"
import * as Form from "../../server/Form.ts"
import { RequestId } from "../../server/RequestId.ts"
import { maxUploadBytes, sourceDetail } from "./SourcesApi.ts"

const noVectors = { profile: null, chunks: 0, embedded: 0, error: null }

export const layer = HttpApiBuilder.group(Api, "sources", (handlers) =>
  Effect.gen(function* () {
    const sources = yield* Sources
    const audit = yield* AuditTrail

    /** Makes `change` with the key of the request, and records it. */
    const audited = <A, E, R>(
      action: string,
      change: (key: AgentKey) => Effect.Effect<A, E, R>,
      target: string | ((outcome: A) => string)
    ) =>
      Effect.gen(function* () {
        const key = yield* CurrentKey
        const actor = { type: "key" as const, id: key.keyId }
        const by = { tenantId: key.tenantId, actor, requestId: yield* RequestId }
        return yield* audit.change(by, action, change(key), target)
      })
    const createdId = ({ source }: Created) => source.id

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
        // A repeat is recorded, too: the entry of the first request may be what failed.
        audited("source.create", (key) => sources.create(key, payload, headers["idempotency-key"]), createdId)
      )
      .handleRaw("upload", ({ request }) =>
        Effect.gen(function* () {
          const { name, fileName, labels, bytes } = yield* Form.readDocument(
            request,
            maxUploadBytes,
            (content) => sources.stage(content)
          )
          const document = { name, fileName, labels, bytes }
          return yield* audited("source.create", (key) => sources.upload(key, "FILE", document), createdId)
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
        audited("source.update", (key) => sources.patch(key, path.id, payload), path.id)
      )
      .handle("remove", ({ path: { id } }) =>
        Effect.as(
          audited("source.delete", (key) => sources.remove(key, id), id),
          { id, deleted: true } as const
        )
      )
      .handle("sync", ({ path, payload }) =>
        audited("source.sync", (key) => sources.sync(key, path.id, payload), path.id)
      )
  })
)
