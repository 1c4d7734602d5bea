import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import type * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { invalidField } from "../../../domain/Errors.ts"
import { AgentId } from "../../../domain/Ids.ts"
import { type Created, Sources } from "../../../usecases/knowledge/Sources.ts"
import { SourceScopes } from "../../../usecases/knowledge/SourceScopes.ts"
import { Api, type GroupHandlers } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"
import * as Cursor from "../../Cursor.ts"
import * as Form from "../../server/Form.ts"
import { maxUploadBytes, sourceDetail } from "../../public/knowledge/SourcesApi.ts"
import { audited, auditedRemoval } from "../accounts/Actor.ts"

const decodeAgentId = Schema.decodeUnknown(AgentId)

const agentOf = (fields: Readonly<Record<string, string>>) =>
  Effect.mapError(decodeAgentId(fields["agentId"]), () =>
    invalidField(["agentId"], "Expected the id of an agent")
  )

const sourceIdOf = ({ source }: Created) => source.id

const group = (handlers: GroupHandlers<"hostedSources">) =>
  Effect.gen(function* () {
    const sources = yield* Sources
    const scopes = yield* SourceScopes

    const upload = (type: "FILE" | "BULK_UPLOAD", request: HttpServerRequest.HttpServerRequest) =>
      Effect.gen(function* () {
        const { fields, ...document } = yield* Form.readDocument(request, maxUploadBytes, (content) =>
          sources.stage(content)
        )
        const scope = yield* scopes.ofAgent(yield* CurrentUser, yield* agentOf(fields))
        return yield* audited("source.create", () => sources.upload(scope, type, document), sourceIdOf)
      }).pipe(Effect.scoped)

    return handlers
      .handle("list", ({ urlParams: { agentId, artifact, limit = 20, cursor, q, status, type } }) =>
        Effect.gen(function* () {
          const scope = yield* scopes.ofAgent(yield* CurrentUser, agentId)
          const list = { scope: agentId, route: "/api/sources", filter: { artifact, q, status, type } }
          const { nextCursor, rows } = yield* Cursor.page(list, cursor, (after) =>
            sources.list(scope, { limit, after, status, type, text: q, artifact })
          )
          return { sources: rows, nextCursor }
        })
      )
      .handle("create", ({ payload: { agentId, ...source } }) =>
        Effect.gen(function* () {
          const scope = yield* scopes.ofAgent(yield* CurrentUser, agentId)
          return yield* audited("source.create", () => sources.add(scope, source), sourceIdOf)
        })
      )
      .handleRaw("upload", ({ request }) => upload("FILE", request))
      .handleRaw("bulkUpload", ({ request }) => upload("BULK_UPLOAD", request))
      .handle("get", ({ path: { id } }) =>
        Effect.gen(function* () {
          return sourceDetail(yield* sources.get(yield* scopes.ofSource(yield* CurrentUser, id), id))
        })
      )
      .handle("patch", ({ path: { id }, payload }) =>
        Effect.gen(function* () {
          const scope = yield* scopes.ofSource(yield* CurrentUser, id)
          return yield* audited("source.update", () => sources.patch(scope, id, payload), id)
        })
      )
      .handle("remove", ({ path: { id } }) =>
        Effect.gen(function* () {
          const scope = yield* scopes.ofSource(yield* CurrentUser, id)
          return yield* auditedRemoval("source.delete", id, () => sources.remove(scope, id))
        })
      )
      .handle("sync", ({ path: { id }, payload }) =>
        Effect.gen(function* () {
          const scope = yield* scopes.ofSource(yield* CurrentUser, id)
          return yield* audited("source.sync", () => sources.sync(scope, id, payload), id)
        })
      )
      .handle("readers", () => Effect.succeed({ readers: sources.readers }))
      .handle("job", ({ path: { id, jobId } }) =>
        Effect.gen(function* () {
          return yield* sources.jobOf(yield* scopes.ofSource(yield* CurrentUser, id), id, jobId)
        })
      )
  })

export const SourcesHandlers = HttpApiBuilder.group(Api, "hostedSources", group)
export const ManagedSourcesHandlers = HttpApiBuilder.group(Api, "managedSources", group)
