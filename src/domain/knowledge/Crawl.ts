/** The crawl report: the result for each address that a source's job visited. Also the dry run of a crawl. */
import * as Schema from "effect/Schema"
import { IngestionJobId } from "../Ids.ts"
import { HttpUrl, IngestionJobStatus, IngestionJobType, SitemapConfig, UrlConfig } from "./Source.ts"
import { Text } from "../Text.ts"

export const CrawlOutcome = Schema.Literal("indexed", "unchanged", "skipped", "failed", "redirected")
export type CrawlOutcome = typeof CrawlOutcome.Type

/** The result for one address. */
export const CrawlEntry = Schema.Struct({
  url: Schema.String,
  /** Number of links from the first page to this one; 0 for addresses of the config and of a sitemap. */
  depth: Schema.Int,
  /** The page or sitemap that links to it. */
  parent: Schema.NullOr(Schema.String),
  outcome: CrawlOutcome,
  /** A stable code; null if the outcome is enough. */
  reason: Schema.NullOr(Schema.String),
  message: Schema.NullOr(Schema.String),
  httpStatus: Schema.NullOr(Schema.Int),
  /** The document that it became or repeats, or the target of its redirect. */
  target: Schema.NullOr(Schema.String)
})
export type CrawlEntry = typeof CrawlEntry.Type

/** The job of a report, with the error of each failed attempt. */
export const ReportedJob = Schema.Struct({
  id: IngestionJobId,
  type: IngestionJobType,
  status: IngestionJobStatus,
  attemptErrors: Schema.Array(Schema.Struct({ at: Schema.DateTimeUtc, error: Schema.String }))
})
export type ReportedJob = typeof ReportedJob.Type

const urls = Schema.optionalWith(
  Schema.Array(Text.pipe(Schema.minLength(1), Schema.maxLength(2_048))).pipe(
    Schema.minItems(1),
    Schema.maxItems(1_000)
  ),
  { exact: true }
)

/** Body of a dry run. With `urls`, only those are judged, and nothing is fetched. */
export const DryRunRequest = Schema.Union(
  Schema.Struct({ type: Schema.Literal("URL"), config: UrlConfig, urls }),
  Schema.Struct({ type: Schema.Literal("SITEMAP"), config: SitemapConfig, urls })
)
export type DryRunRequest = typeof DryRunRequest.Type

/** The decision of a dry run about an address, with its reason. */
export const DryRunLine = Schema.Struct({
  url: Schema.String,
  included: Schema.Boolean,
  reason: Schema.NullOr(Schema.String),
  message: Schema.NullOr(Schema.String),
  /** The pattern that decided. */
  pattern: Schema.NullOr(Schema.String),
  /** Null if it was not found by following links. */
  depth: Schema.NullOr(Schema.Int),
  parent: Schema.NullOr(Schema.String),
  /** The result of robots.txt; null if it was not consulted. */
  robots: Schema.NullOr(Schema.Literal("allowed", "disallowed")),
  httpStatus: Schema.NullOr(Schema.Int)
})
export type DryRunLine = typeof DryRunLine.Type

/** `complete` is false when the limit of pages or time was reached first; `error` is why nothing could be read. */
export const DryRun = Schema.Struct({
  urls: Schema.Array(DryRunLine),
  complete: Schema.Boolean,
  error: Schema.NullOr(Schema.String)
})
export type DryRun = typeof DryRun.Type

/** True for an address that a source could have. */
export const isHttpUrl = Schema.is(Schema.typeSchema(HttpUrl))
