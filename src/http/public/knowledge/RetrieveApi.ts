/** Searches source chunks, without a generated answer. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as OpenApi from "@effect/platform/OpenApi"
import * as Schema from "effect/Schema"
import { Chunk, RetrieveRequest } from "../../../domain/knowledge/Chunk.ts"
import { AgentKeyAuth, RequiredPermission } from "../../Auth.ts"
import { success, UpdatedAt } from "../../Envelope.ts"

const retrieve = HttpApiEndpoint.post("retrieve", "/v1/retrieve")
  .setPayload(RetrieveRequest)
  .addSuccess(success(Schema.Struct({ chunks: Schema.Array(Chunk) })))
  .annotate(OpenApi.Summary, "Search chunks of the agent's sources")

export const RetrieveApi = HttpApiGroup.make("retrieve")
  .add(retrieve)
  .annotate(UpdatedAt, "2026-11-21T00:00:00.000Z")
  .annotateEndpoints(RequiredPermission, "retrieve")
  .middleware(AgentKeyAuth)
