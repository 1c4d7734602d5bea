/** The crawl entries of one attempt. Stores them in batches, and gives readers the entries of the last sync. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { CrawlEntry } from "../../domain/knowledge/Crawl.ts"
import { digestOf, fingerprintOf } from "../../readers/Fingerprint.ts"
import type { PageState, Journal, JournalEntry } from "../../readers/Journal.ts"
import type { ReaderError } from "../../capabilities/SourceReaders.ts"
import { damageOf, type ReadDocument } from "../../readers/Reader.ts"
import type { CrawlEntryStore, NewEntry, AddressState } from "../../store/knowledge/CrawlEntries.ts"
import type { IngestionJobStore, IngestionTask } from "../../store/knowledge/IngestionJobs.ts"

/** Increment when parsing, packing or fingerprints change: all documents are then read again. */
const readingVersion = 2
const batchSize = 200
/** Minimum percentage points between two updates of a job's progress, because each is a transaction. */
const progressStep = 5
/** Maximum entries of one job: a thousand pages, their redirects, and pages that were skipped. */
const maxEntries = 8_000

const toJournalEntry = ({
  url,
  reason,
  outcome,
  target,
  digest,
  fingerprint,
  parent: _,
  ...rest
}: AddressState): JournalEntry => ({
  ...rest,
  url,
  uri: target,
  repeats: outcome === "skipped" ? (reason ?? "same_content") : null,
  digest: digest ?? "",
  fingerprint: fingerprint ?? ""
})

/** Known pages by address. An address that redirects, now or earlier, maps to the target page. */
const knownPages = (states: ReadonlyArray<AddressState>): ReadonlyMap<string, JournalEntry> => {
  const pages = new Map(
    states.filter(({ digest }) => digest !== null).map((state) => [state.url, toJournalEntry(state)] as const)
  )
  const redirected = states.flatMap(({ digest, outcome, url, target }) => {
    const redirects = digest === null && (outcome === "redirected" || outcome === "failed")
    const page = redirects ? pages.get(target) : undefined
    return page === undefined ? [] : [[url, page] as const]
  })
  return new Map([...redirected, ...pages])
}

/** Addresses by the page or sitemap that links to them. */
const linksByParent = (states: ReadonlyArray<AddressState>): ReadonlyMap<string, ReadonlyArray<string>> => {
  const links = new Map<string, Array<string>>()
  for (const { parent, url } of states) {
    if (parent === null) continue
    const found = links.get(parent)
    if (found === undefined) links.set(parent, [url])
    else found.push(url)
  }
  return links
}

const noEvidence = {
  etag: null,
  lastModified: null,
  listedAt: null,
  links: null,
  digest: null,
  fingerprint: null
} as const

/** A `REINDEX` job starts without known pages, so that everything is read again. */
export const makeCrawlLedger = (store: CrawlEntryStore, jobs: IngestionJobStore, task: IngestionTask) =>
  Effect.gen(function* () {
    yield* store.clear(task)
    const remembered = task.jobType === "INGEST" ? yield* store.storedStates(task, readingVersion) : []
    const known = knownPages(remembered)
    const links = linksByParent(remembered)
    const kept = new Set<string>()
    const reportedUrls = new Set<string>()
    let place = 0
    let pendingEntries: Array<NewEntry> = []
    let percent = 1

    const flush = Effect.suspend(() => {
      const entries = pendingEntries
      pendingEntries = []
      return store.add(task, entries)
    })

    const note = (entry: CrawlEntry, evidence?: PageState) =>
      Effect.gen(function* () {
        if (entry.target !== null) reportedUrls.add(entry.target)
        if (place >= maxEntries) return
        const fetchedAt = yield* Clock.currentTimeMillis
        pendingEntries.push({
          ...entry,
          place: place++,
          fetchedAt,
          ...(evidence ?? noEvidence),
          revision: readingVersion
        })
        if (pendingEntries.length >= batchSize) yield* flush
      })

    /** Progress of reading, from 5 to 90 percent. The rest is for making the generation live. */
    const progress = (settled: number, all: number) =>
      Effect.suspend(() => {
        const next = 5 + Math.floor((85 * settled) / Math.max(settled, all, 1))
        if (next < percent + progressStep) return Effect.void
        percent = next
        return jobs.progress(task, task.jobId, next)
      })

    const journal: Journal = {
      known: (url) => known.get(url),
      foundThrough: (parent) => links.get(parent) ?? [],
      keep: (uri) => Effect.sync(() => kept.add(uri)),
      keepUnread: (uri) => Effect.sync(() => kept.add(uri)),
      record: note,
      progress
    }

    const entryOf = (url: string, outcome: CrawlEntry["outcome"]): CrawlEntry => ({
      url,
      depth: 0,
      parent: null,
      outcome,
      reason: null,
      message: null,
      httpStatus: null,
      target: null
    })

    const evidenceOf = (document: ReadDocument): Effect.Effect<PageState> =>
      Effect.map(Clock.currentTimeMillis, (fetchedAt) => ({
        ...noEvidence,
        fetchedAt,
        digest: digestOf(document),
        fingerprint: fingerprintOf(document)
      }))

    /** Records a document for which the reader recorded nothing. False when it is unchanged. */
    const isChanged = (document: ReadDocument) =>
      Effect.gen(function* () {
        const { uri } = document
        if (reportedUrls.has(uri)) return true
        const evidence = yield* evidenceOf(document)
        if (known.get(uri)?.digest !== evidence.digest) {
          yield* note({ ...entryOf(uri, "indexed"), target: uri, ...damageOf(document) }, evidence)
          return true
        }
        kept.add(uri)
        const entry = { ...entryOf(uri, "unchanged"), reason: "same_content", target: uri }
        yield* note({ ...entry, ...damageOf(document) }, evidence)
        return false
      })

    /** Records why nothing could be read, unless an entry says so already. */
    const recordFailure = (url: string, { code, message }: ReaderError) =>
      place === 0 ? note({ ...entryOf(url, "failed"), reason: code, message }) : Effect.void

    return { journal, isChanged, recordFailure, flush, kept: () => [...kept] } as const
  })
