/** Search of source chunks without generation (specification 4.4). */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as OpenApi from "@effect/platform/OpenApi"
import * as Schema from "effect/Schema"
import { ChunkId, DocumentId } from "../../domain/Ids.ts"
import { trimmed } from "../../domain/Text.ts"
import { AgentKeyAuth, RequiredPermission } from "../Auth.ts"
import { success, UpdatedAt } from "../Envelope.ts"

/** Body of `POST /v1/retrieve`; defaults of contract 7. */
export const RetrieveRequest = Schema.Struct({
  query: trimmed(1_000),
  topK: Schema.optionalWith(Schema.Int.pipe(Schema.between(1, 20)), { exact: true, default: () => 5 }),
  minScore: Schema.optionalWith(Schema.Number.pipe(Schema.between(0, 1)), { exact: true, default: () => 0 })
})

/** Specification 2.3. */
const ChunkView = Schema.Struct({
  id: ChunkId,
  documentId: DocumentId,
  sourceName: Schema.String,
  text: Schema.String,
  score: Schema.Number,
  url: Schema.String
})

export const RetrieveApi = HttpApiGroup.make("retrieve")
  .add(
    HttpApiEndpoint.post("retrieve", "/v1/retrieve")
      .setPayload(RetrieveRequest)
      .addSuccess(success(Schema.Struct({ chunks: Schema.Array(ChunkView) })))
      .annotate(OpenApi.Summary, "Search chunks of the agent's sources")
  )
  .annotate(UpdatedAt, "2026-11-21T00:00:00.000Z")
  .annotateEndpoints(RequiredPermission, "retrieve")
  .middleware(AgentKeyAuth)
