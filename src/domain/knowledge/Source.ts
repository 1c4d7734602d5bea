/** Knowledge sources and their ingestion jobs. */
import * as Schema from "effect/Schema"
import { urlOf } from "../Address.ts"
import { optional, withDefault } from "../Optional.ts"
import { QaConfig, TextConfig } from "./CuratedSource.ts"
import { AgentId, IngestionJobId, SourceId } from "../Ids.ts"
import { ReaderName } from "./SourceReader.ts"
import { SourceMetadata } from "./SourceMetadata.ts"
import { SourceLabels } from "./SourceScope.ts"
import { bounded, Text, trimmed } from "../Text.ts"

export const SourceStatus = Schema.Literal("PENDING", "PROCESSING", "READY", "FAILED")
export type SourceStatus = typeof SourceStatus.Type
export const IngestionJobType = Schema.Literal("INGEST", "REINDEX")
export type IngestionJobType = typeof IngestionJobType.Type
export const IngestionJobStatus = Schema.Literal("QUEUED", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED")
export type IngestionJobStatus = typeof IngestionJobStatus.Type

const isHttpUrl = (text: string) => {
  const url = urlOf(text)
  return url !== null && ["http:", "https:"].includes(url.protocol) && url.hostname !== ""
}

/**
 * An absolute http or https URL of at most 2,048 characters. Whether the address may be reached is decided when
 * fetching.
 */
export const HttpUrl = Text.pipe(
  Schema.compose(Schema.Trim),
  Schema.maxLength(2_048),
  Schema.filter(isHttpUrl, { message: () => "Expected an absolute http or https URL" })
)

/** Content address of an uploaded original: `sha256:` and 64 hexadecimal digits. */
export const ArtifactRef = Schema.String.pipe(
  Schema.pattern(/^sha256:[0-9a-f]{64}$/),
  Schema.brand("ArtifactRef")
)
export type ArtifactRef = typeof ArtifactRef.Type

const Glob = bounded(1_024)
const Patterns = optional(Schema.Array(Glob).pipe(Schema.maxItems(100)))
const FileName = trimmed(255)

const metadata = optional(SourceMetadata)

/** How often a source is read again automatically; default: `off`. */
export const Refresh = Schema.Literal("off", "daily", "weekly")
export type Refresh = typeof Refresh.Type
const refresh = optional(Refresh)

export const UrlConfig = Schema.Struct({
  url: HttpUrl,
  maxDepth: optional(Schema.Int.pipe(Schema.between(0, 5))),
  includePatterns: Patterns,
  excludePatterns: Patterns,
  refresh,
  metadata
})
export const SitemapConfig = Schema.Struct({
  sitemapUrl: optional(HttpUrl),
  url: optional(HttpUrl),
  includePatterns: Patterns,
  excludePatterns: Patterns,
  refresh,
  metadata
}).pipe(
  Schema.filter(({ sitemapUrl, url }) => sitemapUrl !== undefined || url !== undefined, {
    message: () => "Expected sitemapUrl or url"
  })
)
export const FileConfig = Schema.Struct({ fileUrl: HttpUrl, fileName: optional(FileName), refresh, metadata })
/** An uploaded FILE or IMAGE. Only the upload routes create it. */
export const UploadedFileConfig = Schema.Struct({ artifact: ArtifactRef, fileName: FileName, metadata })
/**
 * A ZIP of documents. Only the bulk-upload route creates it; callers of the public route can send only an empty config.
 */
export const BulkUploadConfig = Schema.Struct({
  artifact: optional(ArtifactRef),
  fileName: optional(FileName),
  metadata
})

/**
 * Config of a registered reader. The reader's own schema checks `settings`. They are nested, so that they cannot clash
 * with the common fields of sources. Secret settings are never stored here.
 */
export const ConnectorConfig = Schema.Struct({
  reader: ReaderName,
  settings: Schema.Record({ key: Schema.String, value: Schema.Unknown }),
  refresh,
  metadata
})

export const SourceName = trimmed(200)

const common = { name: SourceName, labels: optional(SourceLabels), autoSync: optional(Schema.Boolean) }

/**
 * A source type: what a caller may configure, what is stored, whether it can be refreshed on a schedule, and which
 * field of the config is its content, if any.
 */
const define = <
  const Type extends string,
  Given extends Schema.Schema.AnyNoContext,
  Stored extends Schema.Schema.AnyNoContext
>(
  type: Type,
  schemas: {
    readonly given: Given
    readonly stored: Stored
    readonly refreshable: boolean
    readonly content?: string
  }
) => ({
  type,
  refreshable: schemas.refreshable,
  content: schemas.content ?? null,
  create: Schema.Struct({ type: Schema.Literal(type), config: schemas.given, ...common }),
  configured: Schema.Struct({
    type: Schema.Literal(type),
    config: schemas.given,
    labels: optional(SourceLabels)
  }),
  stored: Schema.Struct({ type: Schema.Literal(type), config: schemas.stored })
})

const fileSchemas = {
  given: FileConfig,
  stored: Schema.Union(UploadedFileConfig, FileConfig),
  refreshable: true
}

const bulkUpload = define("BULK_UPLOAD", {
  given: Schema.Struct({ metadata }),
  stored: BulkUploadConfig,
  refreshable: false
})

/**
 * Every source type. The schemas below derive from this list. Behaviour that differs by type elsewhere is a record by
 * `SourceType`, which does not compile while one is missing.
 */
const definitions = [
  define("URL", { given: UrlConfig, stored: UrlConfig, refreshable: true }),
  define("SITEMAP", { given: SitemapConfig, stored: SitemapConfig, refreshable: true }),
  define("FILE", fileSchemas),
  define("IMAGE", fileSchemas),
  {
    ...bulkUpload,
    // Nothing has to be configured, so the config may be missing.
    create: Schema.Struct({
      ...bulkUpload.create.fields,
      config: withDefault(bulkUpload.create.fields.config, () => ({}))
    })
  },
  define("TEXT", { given: TextConfig, stored: TextConfig, refreshable: false, content: "text" }),
  define("QA", { given: QaConfig, stored: QaConfig, refreshable: false, content: "pairs" }),
  define("CONNECTOR", { given: ConnectorConfig, stored: ConnectorConfig, refreshable: true })
]

export const SourceType = Schema.Literal(...definitions.map(({ type }) => type))
export type SourceType = typeof SourceType.Type

/** Source types that can be refreshed on a schedule. */
export const refreshableTypes: ReadonlyArray<SourceType> = definitions.flatMap(({ refreshable, type }) =>
  refreshable ? [type] : []
)

/** Config fields that hold content. Lists of sources omit them. */
export const contentFields: ReadonlyArray<string> = definitions.flatMap(({ content }) =>
  content === null ? [] : [content]
)

/** True for a type whose content is in its config. A change of it is read at once. */
export const hasContent = (type: SourceType): boolean =>
  definitions.some((definition) => definition.type === type && definition.content !== null)

/** A source's config as stored: one shape for each type. */
export const StoredSourceConfig = Schema.Union(...definitions.map(({ stored }) => stored))
export type StoredSourceConfig = typeof StoredSourceConfig.Type

/** Body of `POST /v1/sources`. */
export const CreateSource = Schema.Union(...definitions.map(({ create }) => create))
export type CreateSource = typeof CreateSource.Type

const isWritable = (type: string) => type !== "BULK_UPLOAD" && type !== "CONNECTOR"

/**
 * A source in a configuration file, under its name. Uploads, and sources whose secrets a file could not hold, cannot be
 * in a file.
 */
export const ConfiguredSource = Schema.Union(
  ...definitions.filter(({ type }) => isWritable(type)).map(({ configured }) => configured)
)
export type ConfiguredSource = typeof ConfiguredSource.Type

/** Body of `PATCH /v1/sources/:id`. The use-case checks `config` against the source's type. */
export const PatchSource = Schema.Struct({
  name: optional(SourceName),
  /** Replaces its labels at once. */
  labels: optional(SourceLabels),
  config: optional(Schema.Record({ key: Schema.String, value: Schema.Unknown }))
}).pipe(
  Schema.filter((change) => Object.values(change).some((field) => field !== undefined), {
    message: () => "Expected name, labels or config"
  })
)
export type PatchSource = typeof PatchSource.Type

const SourceConfigView = Schema.Record({ key: Schema.String, value: Schema.Unknown })

export class IngestionJob extends Schema.Class<IngestionJob>("IngestionJob")({
  id: IngestionJobId,
  sourceId: SourceId,
  type: IngestionJobType,
  status: IngestionJobStatus,
  progress: Schema.Int,
  chunksCreated: Schema.NullOr(Schema.Int),
  error: Schema.NullOr(Schema.String),
  startedAt: Schema.NullOr(Schema.DateTimeUtc),
  completedAt: Schema.NullOr(Schema.DateTimeUtc)
}) {}

/** The summary of a source's latest job. */
export const LatestJob = Schema.Struct({
  id: IngestionJobId,
  type: IngestionJobType,
  status: IngestionJobStatus,
  progress: Schema.Int,
  chunksCreated: Schema.NullOr(Schema.Int),
  error: Schema.NullOr(Schema.String)
})
export type LatestJob = typeof LatestJob.Type

/** The built-in embedding model with its dimensions, as stored with its vectors. It supports English text only. */
export const builtInEmbeddingProfile = "use-lite/512"

/** The source's vectors of the embedding model that the agent uses. */
export const EmbeddingState = Schema.Struct({
  /** The model and its dimensions; null before the agent's first vector. */
  profile: Schema.NullOr(Schema.String),
  /** Live chunks. */
  chunks: Schema.Int,
  /**
   * Number of live chunks that have a vector, or need none because the model does not support their language. The
   * others are found by their words until they have one.
   */
  embedded: Schema.Int,
  /** Why vectors are missing, if embedding failed. */
  error: Schema.NullOr(Schema.String)
})
export type EmbeddingState = typeof EmbeddingState.Type

/** A source with all fields. The routes return subsets of it. */
export class Source extends Schema.Class<Source>("Source")({
  id: SourceId,
  agentId: AgentId,
  type: SourceType,
  name: Schema.String,
  /**
   * Labels of the keys that may read it. Absent if it has none: every key that may read the agent's sources can read
   * it.
   */
  labels: optional(Schema.Array(Schema.String)),
  status: SourceStatus,
  config: SourceConfigView,
  lastSyncedAt: Schema.NullOr(Schema.DateTimeUtc),
  lastError: Schema.NullOr(Schema.String),
  latestJob: Schema.NullOr(LatestJob),
  /** Present only in the answer for one source. */
  embedding: optional(EmbeddingState)
}) {}
