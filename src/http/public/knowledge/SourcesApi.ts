/** Knowledge sources, and the upload of one document, which the command line uses. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as HttpApiSchema from "@effect/platform/HttpApiSchema"
import * as Multipart from "@effect/platform/Multipart"
import * as OpenApi from "@effect/platform/OpenApi"
import * as Schema from "effect/Schema"
import {
  ArtifactDeleteConflict,
  ArtifactDeleteUnavailable,
  FileTooLarge,
  LimitExceeded,
  PayloadTooLarge,
  NotFound,
  ServiceUnavailable,
  ValidationError
} from "../../../domain/Errors.ts"
import { IdempotencyHeader } from "../../../domain/IdempotencyKey.ts"
import { IngestionJobId, SourceId } from "../../../domain/Ids.ts"
import { nextCursor, pageParams } from "../../../domain/Page.ts"
import {
  CreateSource,
  EmbeddingState,
  IngestionJobStatus,
  LatestJob,
  PatchSource,
  Source,
  SourceName,
  SourceStatus,
  SourceType
} from "../../../domain/knowledge/Source.ts"
import { SourceLabels } from "../../../domain/knowledge/SourceScope.ts"
import { AgentKeyAuth, RequiredPermission } from "../../Auth.ts"
import { MaxBodyBytes, failure, success, UpdatedAt } from "../../Envelope.ts"
import { MiB } from "../../../domain/Bytes.ts"
import { optional } from "../../../domain/Optional.ts"

const { id, agentId, type, name, labels, status, config, lastSyncedAt, lastError } = Source.fields

/** A created source. */
const CreatedSource = Schema.Struct({ id, agentId, type, name, labels, status, config })

const latestJob = Schema.NullOr(LatestJob)

/** An item of the list. */
export const SourceItem = Schema.Struct({
  ...CreatedSource.fields,
  lastSyncedAt,
  lastError,
  latestJob
})

export const SourcePage = Schema.Struct({ sources: Schema.Array(SourceItem), nextCursor })

/** One source. Its `error` is the `lastError` of the list. */
export const SourceDetail = Schema.Struct({ ...CreatedSource.fields, error: lastError, latestJob })

/** A changed source. */
export const ChangedSource = Schema.Struct({ id, agentId, name, labels, type, status })

export const SourceCreation = Schema.Struct({
  source: CreatedSource,
  ingestionJob: Schema.NullOr(Schema.Struct({ id: IngestionJobId, status: IngestionJobStatus }))
})

/** A filter that ignores unknown values. */
export const ignoreUnknown = <A extends string, I>(known: Schema.Schema<A, I>) => {
  const isKnown = Schema.is(known)
  return optional(
    Schema.transform(
      Schema.Union(Schema.String, Schema.Array(Schema.String)),
      Schema.UndefinedOr(Schema.typeSchema(known)),
      {
        strict: true,
        decode: (value) => (isKnown(value) ? value : undefined),
        encode: (value) => value ?? ""
      }
    )
  )
}

/** Maximum bytes of an uploaded document. The form may have one MiB more. */
export const maxUploadBytes = 50 * MiB

/** A deleted source. */
export const DeletedSource = Schema.Struct({ id, deleted: Schema.Literal(true) })

/** Body of a sync. */
export const SyncRequest = Schema.Struct({
  force: Schema.optionalWith(Schema.Boolean, { exact: true, default: () => false })
})

/** The queued job. */
export const SyncedSource = Schema.Struct({ jobId: IngestionJobId, status: IngestionJobStatus, sourceId: id })

const sourcePath = Schema.Struct({ id: SourceId })

export const SourcesApi = HttpApiGroup.make("sources")
  .add(
    HttpApiEndpoint.get("list", "/v1/sources")
      .setUrlParams(
        Schema.Struct({
          ...pageParams.fields,
          status: ignoreUnknown(SourceStatus),
          type: ignoreUnknown(SourceType)
        })
      )
      .addSuccess(success(SourcePage))
      .addError(failure(ValidationError))
      .annotate(OpenApi.Summary, "List sources, newest first")
  )
  .add(
    HttpApiEndpoint.post("create", "/v1/sources")
      .setHeaders(IdempotencyHeader)
      .setPayload(CreateSource)
      .addSuccess(success(SourceCreation), { status: 201 })
      .addError(failure(ValidationError, NotFound, LimitExceeded, ServiceUnavailable))
      .annotate(OpenApi.Summary, "Create a source and queue its ingestion")
  )
  .add(
    HttpApiEndpoint.post("upload", "/v1/sources/upload")
      .setPayload(
        HttpApiSchema.Multipart(
          Schema.Struct({
            file: Multipart.SingleFileSchema,
            name: optional(SourceName),
            labels: optional(Schema.parseJson(SourceLabels))
          })
        )
      )
      .addSuccess(success(SourceCreation), { status: 201 })
      .addError(
        failure(ValidationError, NotFound, FileTooLarge, PayloadTooLarge, LimitExceeded, ServiceUnavailable)
      )
      .annotate(MaxBodyBytes, maxUploadBytes + MiB)
      .annotate(OpenApi.Summary, "Create a source from an uploaded document")
  )
  .add(
    HttpApiEndpoint.get("get", "/v1/sources/:id")
      .setPath(sourcePath)
      .addSuccess(success(SourceDetail))
      .addError(failure(NotFound))
      .annotate(OpenApi.Summary, "Fetch a source and its latest job")
  )
  .add(
    HttpApiEndpoint.get("embedding", "/v1/sources/:id/embedding")
      .setPath(sourcePath)
      .addSuccess(success(EmbeddingState))
      .addError(failure(NotFound))
      .annotate(OpenApi.Summary, "How many of a source's chunks can be found by meaning")
  )
  .add(
    HttpApiEndpoint.patch("patch", "/v1/sources/:id")
      .setPath(sourcePath)
      .setPayload(PatchSource)
      .addSuccess(success(ChangedSource))
      .addError(failure(ValidationError, NotFound, LimitExceeded, ServiceUnavailable))
      .annotate(OpenApi.Summary, "Change a source's name, labels or config")
  )
  .add(
    HttpApiEndpoint.del("remove", "/v1/sources/:id")
      .setPath(sourcePath)
      .addSuccess(success(DeletedSource))
      .addError(failure(NotFound, ArtifactDeleteConflict, ArtifactDeleteUnavailable))
      .annotate(OpenApi.Summary, "Delete a source with its documents and chunks")
  )
  .add(
    HttpApiEndpoint.post("sync", "/v1/sources/:id/sync")
      .setPath(sourcePath)
      .setPayload(SyncRequest)
      .addSuccess(success(SyncedSource), { status: 202 })
      .addError(failure(NotFound, LimitExceeded, ServiceUnavailable))
      .annotate(OpenApi.Summary, "Queue ingestion, or a full re-index")
  )
  .annotate(UpdatedAt, "2026-11-21T00:00:00.000Z")
  .annotateEndpoints(RequiredPermission, "ingest")
  .middleware(AgentKeyAuth)

/** A source as it is on the wire. */
export const sourceDetail = ({ lastError, ...source }: Source) => ({ ...source, error: lastError })
