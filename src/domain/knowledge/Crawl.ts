/** The crawl report: what became of each address that a source's job met, and the trial run of a crawl. */
import * as Schema from "effect/Schema"
import { IngestionJobId } from "../Ids.ts"
import { HttpUrl, IngestionJobStatus, IngestionJobType, SitemapConfig, UrlConfig } from "./Source.ts"
import { Text } from "../Text.ts"

export const CrawlOutcome = Schema.Literal("indexed", "unchanged", "skipped", "failed", "redirected")
export type CrawlOutcome = typeof CrawlOutcome.Type

/** One line of the report. */
export const CrawlEntry = Schema.Struct({
  url: Schema.String,
  /** Links from the first page to this one; 0 for what the config names and what a sitemap lists. */
  depth: Schema.Int,
  /** The page or sitemap that led here. */
  parent: Schema.NullOr(Schema.String),
  outcome: CrawlOutcome,
  /** A stable code, null where the outcome says it all. */
  reason: Schema.NullOr(Schema.String),
  message: Schema.NullOr(Schema.String),
  httpStatus: Schema.NullOr(Schema.Int),
  /** The document that it became or repeats, or where it redirects to. */
  target: Schema.NullOr(Schema.String)
})
export type CrawlEntry = typeof CrawlEntry.Type

/** The job that a report tells of, with the error of each attempt that failed. */
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

/** Body of a dry run: with `urls` they alone are judged, and nothing is fetched. */
export const DryRunRequest = Schema.Union(
  Schema.Struct({ type: Schema.Literal("URL"), config: UrlConfig, urls }),
  Schema.Struct({ type: Schema.Literal("SITEMAP"), config: SitemapConfig, urls })
)
export type DryRunRequest = typeof DryRunRequest.Type

/** What a sync would do with an address, and why. */
export const DryRunLine = Schema.Struct({
  url: Schema.String,
  included: Schema.Boolean,
  reason: Schema.NullOr(Schema.String),
  message: Schema.NullOr(Schema.String),
  /** The pattern that decided. */
  pattern: Schema.NullOr(Schema.String),
  /** Null where it was not found by following links. */
  depth: Schema.NullOr(Schema.Int),
  parent: Schema.NullOr(Schema.String),
  /** The verdict of robots.txt; null where it was not consulted. */
  robots: Schema.NullOr(Schema.Literal("allowed", "disallowed")),
  httpStatus: Schema.NullOr(Schema.Int)
})
export type DryRunLine = typeof DryRunLine.Type

/** `complete` is false when pages or time ran out before everything was seen; `error` says why nothing could be read. */
export const DryRun = Schema.Struct({
  urls: Schema.Array(DryRunLine),
  complete: Schema.Boolean,
  error: Schema.NullOr(Schema.String)
})
export type DryRun = typeof DryRun.Type

/** True for an address that could be a source's. */
export const isHttpUrl = Schema.is(Schema.typeSchema(HttpUrl))
