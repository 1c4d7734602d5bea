/** Crawl report and dry run for the dashboard: like the public routes, for every agent of the tenant. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import { DryRun, DryRunRequest } from "../../../domain/knowledge/Crawl.ts"
import { NotFound, ServiceUnavailable, ValidationError } from "../../../domain/Errors.ts"
import { managed, RequiredRole, SessionAuth } from "../../Auth.ts"
import { failure, success } from "../../Envelope.ts"
import { CrawlReport, reportParams, reportPath } from "../../public/knowledge/CrawlApi.ts"

const report = HttpApiEndpoint.get("report", "/sources/:id/crawl")
  .setPath(reportPath)
  .setUrlParams(reportParams)
  .addSuccess(success(CrawlReport))
  .addError(failure(ValidationError, NotFound))
  .annotate(RequiredRole, "viewer")

const dryRun = HttpApiEndpoint.post("dryRun", "/sources/dry-run")
  .setPayload(DryRunRequest)
  .addSuccess(success(DryRun))
  .addError(failure(ServiceUnavailable))
  .annotate(RequiredRole, "admin")

const crawl = <const Id extends string>(id: Id) => HttpApiGroup.make(id).add(report).add(dryRun)

export class HostedCrawlApi extends crawl("hostedCrawl").prefix("/api").middleware(SessionAuth) {}

export class ManagedCrawlApi extends managed(crawl("managedCrawl"), "sources") {}
