/**
 * One pass of a registered reader over its system. The documents of a step, its crawl entries and the position of the
 * next step are stored in one transaction. An attempt that fails is resumed at the failed step, and no document is lost
 * or stored twice.
 */
import { createHash } from "node:crypto"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import {
  type ReadStep,
  SourceReaders,
  type SteppedDocument,
  permanentError
} from "../../capabilities/SourceReaders.ts"
import { ConnectorConfig } from "../../domain/knowledge/Source.ts"
import { inertAddress } from "../../domain/Address.ts"
import { sanitize } from "../../domain/Text.ts"
import { digestOf } from "../../readers/Fingerprint.ts"
import { CrawlEntryStore, type NewEntry } from "../../store/knowledge/CrawlEntries.ts"
import { type IngestionTask, IngestionJobStore } from "../../store/knowledge/IngestionJobs.ts"
import { KnowledgeStore } from "../../store/knowledge/Knowledge.ts"
import { type Reading, ReadingStore } from "../../store/knowledge/Readings.ts"
import { ConnectorSettings } from "./ConnectorSettings.ts"
import { toDocument } from "./NewDocuments.ts"

/**
 * Increment when the stored form of documents changes: they are then read again, unless the other system says that
 * nothing has changed since its cursor.
 */
const readingVersion = 2
/** Passes of different versions are not compared: what they do not name is then removed. */
const passVersion = 1
/** Maximum documents of one source. */
const maxDocuments = 10_000
/** Maximum crawl entries of one pass: documents, and documents that were left out. */
const maxEntries = 40_000
const maxTitleLength = 300
const maxUriLength = 2_048

type Outcome = "indexed" | "unchanged" | "skipped"

const noReader = (name: string) =>
  permanentError("no_reader", `There is no reader called ${name} on this server.`)
const tooManyDocuments = permanentError(
  "too_many_documents",
  `The source has more than ${maxDocuments.toLocaleString("en")} documents. Divide it by its settings.`
)
const unreadableSecrets = permanentError(
  "secrets_lost",
  "The source's secrets cannot be opened any more. Give them again."
)
/** The error of a source whose config cannot be decoded. */
export const invalidConfig = permanentError("invalid_config", "The source's config is incomplete.")

const NextStep = Schema.Union(
  Schema.Struct({ more: Schema.Unknown }),
  Schema.Struct({ done: Schema.Unknown, complete: Schema.Boolean })
)
const decodeNextStep = Schema.decodeUnknownOption(NextStep)

const decodeConfig = Schema.decodeUnknown(ConnectorConfig)

type Settings = (typeof ConnectorConfig.Type)["settings"]

const sha256 = (value: unknown) => createHash("sha256").update(JSON.stringify(value)).digest("hex")

/**
 * Hash of the reader and its settings, and hash of everything that a pass depends on. Passes with the same first hash
 * read the same documents. Only passes with the same second hash are compared with each other.
 */
const digestsOf = (
  { reader, settings }: typeof ConnectorConfig.Type,
  labels: ReadonlyArray<string>,
  defaults: Settings = {}
): readonly [ofSource: string, ofPass: string] => {
  const sorted = Object.entries(settings)
    .filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(defaults[name]))
    .toSorted()
  return [sha256([reader, sorted]), sha256([passVersion, reader, sorted, labels])]
}

/** True when everybody who may read the source may read the document. */
const isForAllReaders = (labels: ReadonlyArray<string>, document: SteppedDocument) =>
  document.labels === undefined ||
  (labels.length > 0 && labels.every((label) => document.labels?.includes(label)))

const cleaned = (document: SteppedDocument): SteppedDocument => ({
  ...document,
  uri: sanitize(document.uri).slice(0, maxUriLength).toWellFormed(),
  title: sanitize(document.title).trim().slice(0, maxTitleLength).toWellFormed(),
  content: sanitize(document.content)
})

/** Clients link to the URIs of documents, and outsiders may have chosen them, as in a feed. */
const withInertUris = (step: ReadStep<unknown, unknown>): ReadStep<unknown, unknown> => {
  const inert = <A extends { readonly uri: string }>(named: A): A => ({
    ...named,
    uri: inertAddress(named.uri)
  })
  return {
    next: step.next,
    documents: step.documents.map(inert),
    unchanged: step.unchanged?.map(inertAddress) ?? [],
    unread: step.unread?.map(inert) ?? [],
    removed: step.removed?.map(inertAddress) ?? [],
    skipped: step.skipped?.map(inert) ?? []
  }
}

interface KnownDocument {
  readonly revision: string | null
  readonly digest: string
}

/** The result of a pass: URIs of unchanged documents, the number of all documents, and the effect that ends it. */
export interface Pass {
  readonly kept: ReadonlyArray<string>
  readonly documents: number
  /** Run in the transaction that makes the pass live. */
  readonly end: Effect.Effect<void>
}

export class ConnectorPass extends Effect.Service<ConnectorPass>()("usecases/knowledge/ConnectorPass", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const readers = yield* SourceReaders
    const settings = yield* ConnectorSettings
    const readings = yield* ReadingStore
    const entries = yield* CrawlEntryStore
    const jobs = yield* IngestionJobStore
    const knowledge = yield* KnowledgeStore

    const entryOf = (
      place: number,
      fetchedAt: number,
      uri: string,
      outcome: Outcome,
      {
        digest,
        reason,
        revision: etag
      }: { readonly digest?: string; readonly reason?: string; readonly revision?: string | null }
    ): NewEntry => ({
      url: uri,
      target: uri,
      place,
      fetchedAt,
      outcome,
      reason: reason ?? null,
      message: null,
      depth: 0,
      parent: null,
      httpStatus: null,
      etag: etag ?? null,
      digest: digest ?? null,
      lastModified: null,
      listedAt: null,
      links: null,
      fingerprint: null,
      revision: readingVersion
    })

    /** The stored state of this job's pass. Begins a new pass where there is none or the config has changed. */
    const resumePass = (task: IngestionTask, digest: string, found: Option.Option<Reading>) =>
      Effect.gen(function* () {
        const reading = Option.getOrUndefined(found)
        if (reading?.generation === task.generation && reading.passDigest === digest) {
          const reported = yield* readings.reportedLines(task)
          return {
            next: decodeNextStep(reading.position),
            steps: reading.steps,
            lines: reading.lines,
            outcomes: new Map(reported.map(({ outcome, url }) => [url, outcome] as const))
          }
        }
        yield* Effect.gen(function* () {
          yield* knowledge.discard(task)
          yield* entries.clear(task)
          yield* readings.begin(task, digest)
        }).pipe(sql.withTransaction, Effect.orDie)
        return {
          next: Option.none<typeof NextStep.Type>(),
          steps: 0,
          lines: 0,
          outcomes: new Map<string, string>()
        }
      })

    const build = Effect.fn("ConnectorPass.build")(function* (task: IngestionTask) {
      const { config: stored, secrets } = yield* settings.open(task, task.sourceId)
      const config = yield* Effect.mapError(decodeConfig(stored), () => invalidConfig)
      const reader = readers.get(config.reader)
      if (reader === undefined) return yield* noReader(config.reader)
      if (Option.isNone(secrets)) return yield* unreadableSecrets
      const given = { ...config.settings, ...secrets.value }
      const { areApplied, labels } = yield* readings.liveState(task)
      const [ofSource, ofPass] = digestsOf(config, labels, reader.defaults?.(config.settings))
      const digest = `${ofSource} ${ofPass}`
      // Earlier versions hashed settings with their default, too, and release 0.2.0 stored the second hash alone.
      const [sourceAsWritten, passAsWritten] = digestsOf(config, labels)
      const equalDigests = [digest, `${sourceAsWritten} ${passAsWritten}`, passAsWritten]
      const found = yield* readings.find(task)
      const last = Option.filter(found, (reading) => equalDigests.includes(reading.digest ?? ""))
      // True when documents that this pass does not name may stay: everybody who may read the source may read them.
      const mayKeepUnnamed =
        Option.isSome(last) ||
        ((areApplied || reader.limitsDocuments === false) &&
          Option.exists(found, (reading) =>
            [ofSource, sourceAsWritten].includes(reading.digest?.split(" ")[0] ?? "")
          ))
      const isReindex = task.jobType === "REINDEX"
      const knownDocuments = new Map<string, KnownDocument>()
      if (mayKeepUnnamed) {
        for (const { digest: words, etag, target } of yield* entries.storedStates(task, readingVersion)) {
          if (words !== null) knownDocuments.set(target, { revision: etag, digest: words })
        }
      }
      const cursor = isReindex ? null : Option.getOrNull(Option.map(last, (reading) => reading.cursor))
      const known = (uri: string) =>
        isReindex ? undefined : (knownDocuments.get(inertAddress(uri))?.revision ?? undefined)
      const pass = yield* resumePass(task, digest, found)
      const { outcomes } = pass
      let { lines, next, steps } = pass

      /** The new and changed documents of a step by URI, and its crawl entries. */
      const documentsOf = (step: ReadStep<unknown, unknown>) =>
        Effect.gen(function* () {
          const fetchedAt = yield* Clock.currentTimeMillis
          const documents = new Map<string, Effect.Effect.Success<ReturnType<typeof toDocument>>>()
          const written: Array<NewEntry> = []
          const record = (uri: string, outcome: Outcome, more: Parameters<typeof entryOf>[4]) => {
            if (outcome !== "indexed") documents.delete(uri)
            written.push(entryOf(lines + written.length, fetchedAt, uri, outcome, more))
          }
          const keep = (uri: string) => {
            const before = knownDocuments.get(uri)
            if (before !== undefined) record(uri, "unchanged", before)
          }
          for (const uri of step.unchanged ?? []) keep(uri)
          for (const { reason, uri } of step.unread ?? []) {
            if (knownDocuments.has(uri)) keep(uri)
            else record(uri, "skipped", { reason })
          }
          for (const { reason, uri } of step.skipped ?? []) record(uri, "skipped", { reason })
          for (const uri of step.removed ?? []) record(uri, "skipped", { reason: "removed" })
          for (const document of step.documents.map(cleaned)) {
            const { uri } = document
            const words = digestOf(document)
            const evidence = { digest: words, revision: document.revision ?? null }
            if (!isForAllReaders(labels, document)) record(uri, "skipped", { reason: "restricted" })
            else if (!isReindex && knownDocuments.get(uri)?.digest === words)
              record(uri, "unchanged", evidence)
            else {
              const newDocument = yield* toDocument(document)
              if (newDocument.chunks.length === 0) record(uri, "skipped", { reason: "empty" })
              else {
                record(uri, "indexed", evidence)
                documents.set(uri, newDocument)
              }
            }
          }
          return { documents: [...documents.values()], written }
        })

      while (Option.isNone(next) || "more" in next.value) {
        const position = Option.getOrNull(Option.map(next, (at) => ("more" in at ? at.more : null)))
        const step = withInertUris(yield* reader.step(given, { cursor, position, known }))
        const { documents, written } = yield* documentsOf(step)
        yield* Effect.gen(function* () {
          yield* readings.withdraw(task, [...new Set(written.map(({ url }) => url))])
          yield* knowledge.addDocuments(task, documents)
          yield* entries.add(task, written)
          const isAdvanced = yield* readings.advance(task, {
            steps,
            lines: written.length,
            position: step.next
          })
          if (!isAdvanced) return yield* Effect.dieMessage("Another worker has gone on with this pass.")
        }).pipe(sql.withTransaction, Effect.catchTag("SqlError", Effect.die))
        for (const { outcome, url } of written) outcomes.set(url, outcome)
        lines += written.length
        steps++
        if (lines > maxEntries || outcomes.size > maxDocuments * 2) return yield* tooManyDocuments
        next = Option.some(step.next)
        yield* jobs.progress(task, task.jobId, Math.min(90, 5 + steps * 5))
      }
      const { complete, done } = next.value

      const { uris } = yield* readings.liveState(task)
      const keepsUnnamed = !complete && mayKeepUnnamed
      const isKept = (uri: string) => (outcomes.has(uri) ? outcomes.get(uri) === "unchanged" : keepsUnnamed)
      const kept = uris.filter(isKept)
      const built = [...outcomes.values()].filter((outcome) => outcome === "indexed").length
      if (kept.length + built > maxDocuments) return yield* tooManyDocuments
      // The next pass compares with the entries of this generation, so entries of unchanged documents are copied to it.
      const fetchedAt = yield* Clock.currentTimeMillis
      const copiedEntries = kept.flatMap((uri, index) => {
        const before = outcomes.has(uri) ? undefined : knownDocuments.get(uri)
        return before === undefined ? [] : [entryOf(lines + index, fetchedAt, uri, "unchanged", before)]
      })
      const ended: Pass = {
        kept,
        documents: built + kept.length,
        end: Effect.zipRight(entries.add(task, copiedEntries), readings.finish(task, done, labels))
      }
      return ended
    })

    return { build } as const
  })
}) {}
