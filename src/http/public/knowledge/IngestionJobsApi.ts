/** Ingestion jobs. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as OpenApi from "@effect/platform/OpenApi"
import * as Schema from "effect/Schema"
import { NotFound } from "../../../domain/Errors.ts"
import { IngestionJobId } from "../../../domain/Ids.ts"
import { IngestionJob } from "../../../domain/knowledge/Source.ts"
import { AgentKeyAuth, RequiredPermission } from "../../Auth.ts"
import { failure, success, UpdatedAt } from "../../Envelope.ts"

export const IngestionJobsApi = HttpApiGroup.make("ingestionJobs")
  .add(
    HttpApiEndpoint.get("get", "/v1/ingestion-jobs/:id")
      .setPath(Schema.Struct({ id: IngestionJobId }))
      .addSuccess(success(Schema.Struct(IngestionJob.fields)))
      .addError(failure(NotFound))
      .annotate(OpenApi.Summary, "Fetch a job's status")
  )
  .annotate(UpdatedAt, "2026-11-21T00:00:00.000Z")
  .annotateEndpoints(RequiredPermission, "ingest")
  .middleware(AgentKeyAuth)
