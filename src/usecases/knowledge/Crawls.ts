/** Reports of crawls, and dry runs. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import {
  type CrawlEntry,
  type DryRun,
  type DryRunLine,
  type DryRunRequest,
  isHttpUrl,
  type ReportedJob
} from "../../domain/knowledge/Crawl.ts"
import { withSharedPermit } from "../../concurrency/CurrentOwner.ts"
import { ServiceUnavailable, noSuch } from "../../domain/Errors.ts"
import { FairLimiter } from "../../concurrency/FairLimiter.ts"
import type { SourceId } from "../../domain/Ids.ts"
import { pageBy } from "../../domain/Page.ts"
import { WorkBudget } from "../../concurrency/WorkBudget.ts"
import { linkSkipReason } from "../../readers/Crawl.ts"
import { makeUrlFilter, type Patterns, type Verdict } from "../../readers/Glob.ts"
import { type Journal, noJournal } from "../../readers/Journal.ts"
import { read } from "../../readers/Readers.ts"
import type { ReaderError } from "../../capabilities/SourceReaders.ts"
import type { ReaderServices } from "../../readers/Reader.ts"
import { type SkipReason, skipMessages } from "../../readers/Visits.ts"
import { CrawlEntryStore, type LineFilter, type ReportScope } from "../../store/knowledge/CrawlEntries.ts"

/** Maximum pages that a dry run fetches, and its time-out. */
const maxDryRunPages = 50
const dryRunTimeout = "25 seconds"
/** Maximum entries in the response. */
const maxLines = 1_000

const emptyEntry = { message: null, pattern: null, depth: null, parent: null, robots: null, httpStatus: null }

const tooManyDryRuns = () =>
  new ServiceUnavailable({
    message: "Too many dry runs are under way. Try again in half a minute.",
    details: { retryAfterSeconds: 30 }
  })

/** A page of a report. `next` is the cursor of the following page. */
export interface CrawlReport {
  readonly job: ReportedJob | null
  readonly entries: ReadonlyArray<CrawlEntry>
  readonly next: string | null
}

const emptyReport: CrawlReport = { job: null, entries: [], next: null }

/** The rules of a crawl. A URL source stays on its site; a sitemap may list any site. */
const rulesOf = ({ type, config }: DryRunRequest, budget: WorkBudget) => {
  const verdict: (url: string) => Verdict = makeUrlFilter(config, budget)
  if (type === "URL") return linkSkipReason(new URL(config.url).origin, verdict)
  return (url: string): { readonly reason: SkipReason | null; readonly pattern: string | null } =>
    verdict(url)
}

/** Applies the patterns only. Nothing is fetched. */
const judgeUrls = Effect.fn("Crawls.judgeUrls")(function* (
  request: DryRunRequest,
  urls: ReadonlyArray<string>
) {
  const budget = new WorkBudget()
  const reasonOf = rulesOf(request, budget)
  const lineOf = (url: string): DryRunLine => {
    if (!isHttpUrl(url)) {
      const message = "Expected an absolute http or https URL."
      return { ...emptyEntry, url, included: false, reason: "invalid_url", message }
    }
    const href = new URL(url)
    href.hash = ""
    const { reason, pattern } = reasonOf(href.href)
    const message = reason === null ? null : skipMessages[reason]
    return { ...emptyEntry, url, included: reason === null, reason, message, pattern }
  }
  const lines: Array<DryRunLine> = []
  for (const url of urls) {
    if (budget.isYieldDue) yield* budget.yieldIfDue
    lines.push(lineOf(url))
  }
  const dryRun: DryRun = {
    urls: lines,
    complete: lines.every(({ reason }) => reason !== "match_limit"),
    error: null
  }
  return dryRun
})

const matchesPatterns = ({ url, reason }: CrawlEntry) =>
  isHttpUrl(url) && reason !== "other_origin" && reason !== "asset"

const skipReasons: ReadonlySet<string | null> = new Set<SkipReason>(
  Object.keys(skipMessages).filter(isSkipReason)
)

function isSkipReason(name: string): name is SkipReason {
  return name in skipMessages
}

const robotsOf = ({ outcome, reason }: CrawlEntry): DryRunLine["robots"] => {
  if (reason === "robots_disallowed") return "disallowed"
  if (outcome === "skipped" && skipReasons.has(reason)) return null
  return reason?.startsWith("robots_") === true ? null : "allowed"
}

const judgeEntries = Effect.fn("Crawls.judgeEntries")(function* (
  patterns: Patterns,
  entries: ReadonlyArray<CrawlEntry>
) {
  const budget = new WorkBudget()
  const verdict = makeUrlFilter(patterns, budget)
  const lines: Array<DryRunLine> = []
  for (const entry of entries) {
    if (budget.isYieldDue) yield* budget.yieldIfDue
    lines.push({
      url: entry.url,
      included: entry.outcome === "indexed",
      reason: entry.reason,
      message: entry.message,
      pattern: matchesPatterns(entry) ? verdict(entry.url).pattern : null,
      depth: entry.depth,
      parent: entry.parent,
      robots: robotsOf(entry),
      httpStatus: entry.httpStatus
    })
  }
  return lines
})

/** Skip reasons that mean there were more pages. */
const limitReasons: ReadonlySet<string | null> = new Set<SkipReason>(["page_limit", "match_limit"])

export class Crawls extends Effect.Service<Crawls>()("usecases/knowledge/Crawls", {
  effect: Effect.gen(function* () {
    const store = yield* CrawlEntryStore
    const services = yield* Effect.context<ReaderServices>()
    const limiter = new FairLimiter({ name: "crawl-dry-runs", permits: 8, maxPermitsPerOwner: 4 })

    /** The report of the running or last job, page by page. `after` continues a page of the same job. */
    const report = Effect.fn("Crawls.report")(function* (
      scope: ReportScope,
      sourceId: SourceId,
      { limit, after, outcome }: Omit<LineFilter, "after"> & { readonly after?: string | undefined }
    ) {
      if (!(yield* store.exists(scope, sourceId))) return yield* noSuch("source")
      const found = yield* store.lastJob(scope, sourceId)
      if (Option.isNone(found)) return emptyReport
      const { generation, ...job } = found.value
      const [listedGeneration, place] = (after ?? "").split(":").map(Number)
      // A newer job has its own report and the old one is removed: a cursor of another job starts from the beginning.
      const from = listedGeneration === generation ? place : undefined
      const lines = yield* store.list(scope, sourceId, generation, { limit, after: from, outcome })
      const { next, rows } = pageBy(lines, limit, (last) => `${generation}:${last.place}`)
      const page: CrawlReport = { job, entries: rows, next }
      return page
    })

    const crawl = (request: DryRunRequest) => {
      const entries: Array<CrawlEntry> = []
      const journal: Journal = {
        ...noJournal,
        record: (entry) =>
          Effect.sync(() => {
            if (entries.length < maxLines) entries.push(entry)
          })
      }
      const config = { maxDocuments: maxDryRunPages, maxPages: maxDryRunPages, journal }
      const run =
        request.type === "URL"
          ? read({ type: "URL", config: request.config }, config)
          : read({ type: "SITEMAP", config: request.config }, config)
      return run.pipe(
        Stream.runDrain,
        Effect.either,
        Effect.timeoutOption(dryRunTimeout),
        Effect.flatMap((ended) => {
          const failure = Option.flatMap(ended, Either.getLeft)
          const limited =
            entries.some(({ reason }) => limitReasons.has(reason)) || entries.length === maxLines
          return Effect.map(judgeEntries(request.config, entries), (urls): DryRun => ({
            urls,
            complete: Option.isSome(ended) && !limited,
            error: Option.getOrNull(
              Option.map(failure, ({ code, message }: ReaderError) => `${code}: ${message}`)
            )
          }))
        }),
        Effect.provide(services)
      )
    }

    /**
     * Pages that a sync would read, with reasons. With `urls` only the patterns are applied; otherwise a few pages are
     * crawled. Stores nothing.
     */
    const dryRun = Effect.fn("Crawls.dryRun")(function* (request: DryRunRequest) {
      if (request.urls !== undefined) return yield* judgeUrls(request, request.urls)
      return yield* withSharedPermit(limiter, tooManyDryRuns)(crawl(request))
    })

    return { report, dryRun } as const
  })
}) {}
