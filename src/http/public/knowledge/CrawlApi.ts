/** The report of a source's crawl, and the dry run. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as OpenApi from "@effect/platform/OpenApi"
import * as Schema from "effect/Schema"
import {
  CrawlEntry,
  CrawlOutcome,
  DryRun,
  DryRunRequest,
  ReportedJob
} from "../../../domain/knowledge/Crawl.ts"
import { NotFound, ServiceUnavailable, ValidationError } from "../../../domain/Errors.ts"
import { SourceId } from "../../../domain/Ids.ts"
import { cursorParam, limitParam, nextCursor } from "../../../domain/Page.ts"
import { optional } from "../../../domain/Optional.ts"
import { AgentKeyAuth, RequiredPermission } from "../../Auth.ts"
import { failure, success, UpdatedAt } from "../../Envelope.ts"

export const reportPath = Schema.Struct({ id: SourceId })
export const reportParams = Schema.Struct({
  limit: limitParam(500),
  cursor: cursorParam,
  outcome: optional(CrawlOutcome)
})
export const CrawlReport = Schema.Struct({
  job: Schema.NullOr(ReportedJob),
  entries: Schema.Array(CrawlEntry),
  nextCursor
})

export const CrawlApi = HttpApiGroup.make("crawl")
  .add(
    HttpApiEndpoint.get("report", "/v1/sources/:id/crawl")
      .setPath(reportPath)
      .setUrlParams(reportParams)
      .addSuccess(success(CrawlReport))
      .addError(failure(ValidationError, NotFound))
      .annotate(OpenApi.Summary, "What the latest job did with each address, and why")
  )
  .add(
    HttpApiEndpoint.post("dryRun", "/v1/sources/dry-run")
      .setPayload(DryRunRequest)
      .addSuccess(success(DryRun))
      .addError(failure(ServiceUnavailable))
      .annotate(OpenApi.Summary, "What a source would take, without keeping anything")
  )
  .annotate(UpdatedAt, "2026-11-21T00:00:00.000Z")
  .annotateEndpoints(RequiredPermission, "ingest")
  .middleware(AgentKeyAuth)
