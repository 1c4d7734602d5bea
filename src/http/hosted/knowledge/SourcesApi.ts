/**
 * Sources of the tenant's agents, for the dashboard: the public routes' operations, and uploads. Viewers read, admins
 * write.
 */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as HttpApiSchema from "@effect/platform/HttpApiSchema"
import * as Multipart from "@effect/platform/Multipart"
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
import { AgentId, IngestionJobId, SourceId } from "../../../domain/Ids.ts"
import { optional } from "../../../domain/Optional.ts"
import { pageParams } from "../../../domain/Page.ts"
import {
  ArtifactRef,
  CreateSource,
  IngestionJob,
  PatchSource,
  SourceName,
  SourceStatus,
  SourceType
} from "../../../domain/knowledge/Source.ts"
import { ReaderForm } from "../../../domain/knowledge/SourceReader.ts"
import { SourceLabels } from "../../../domain/knowledge/SourceScope.ts"
import { trimmed } from "../../../domain/Text.ts"
import { managed, RequiredRole, SessionAuth } from "../../Auth.ts"
import { MaxBodyBytes, failure, success } from "../../Envelope.ts"
import {
  ChangedSource,
  DeletedSource,
  ignoreUnknown,
  SourceCreation,
  SourceDetail,
  SourcePage,
  SyncedSource,
  SyncRequest,
  maxUploadBytes
} from "../../public/knowledge/SourcesApi.ts"
import { MiB } from "../../../domain/Bytes.ts"

const path = Schema.Struct({ id: SourceId })

const list = HttpApiEndpoint.get("list", "/sources")
  .setUrlParams(
    Schema.Struct({
      agentId: AgentId,
      ...pageParams.fields,
      status: ignoreUnknown(SourceStatus),
      type: ignoreUnknown(SourceType),
      /** Part of the name. */
      q: optional(trimmed(200)),
      /** The uploaded original: finds sources with the same content. */
      artifact: optional(ArtifactRef)
    })
  )
  .addSuccess(success(SourcePage))
  .addError(failure(ValidationError, NotFound))
  .annotate(RequiredRole, "viewer")

/** Body of a creation: the public route's body with `agentId`. */
export const CreateAgentSource = Schema.extend(CreateSource, Schema.Struct({ agentId: AgentId }))

const create = HttpApiEndpoint.post("create", "/sources")
  .setPayload(CreateAgentSource)
  .addSuccess(success(SourceCreation), { status: 201 })
  .addError(failure(ValidationError, NotFound, LimitExceeded, ServiceUnavailable))
  .annotate(RequiredRole, "admin")

const form = HttpApiSchema.Multipart(
  Schema.Struct({
    agentId: AgentId,
    file: Multipart.SingleFileSchema,
    name: optional(SourceName),
    labels: optional(Schema.parseJson(SourceLabels))
  })
)

const uploadTo = <const Name extends string>(name: Name, route: `/${string}`) =>
  HttpApiEndpoint.post(name, route)
    .setPayload(form)
    .addSuccess(success(SourceCreation), { status: 201 })
    .addError(
      failure(ValidationError, NotFound, FileTooLarge, PayloadTooLarge, LimitExceeded, ServiceUnavailable)
    )
    .annotate(MaxBodyBytes, maxUploadBytes + MiB)
    .annotate(RequiredRole, "admin")

/** One document. */
const upload = uploadTo("upload", "/sources/upload")

/** One ZIP of documents. */
const bulkUpload = uploadTo("bulkUpload", "/sources/bulk-upload")

const get = HttpApiEndpoint.get("get", "/sources/:id")
  .setPath(path)
  .addSuccess(success(SourceDetail))
  .addError(failure(ValidationError, NotFound))
  .annotate(RequiredRole, "viewer")

const patch = HttpApiEndpoint.patch("patch", "/sources/:id")
  .setPath(path)
  .setPayload(PatchSource)
  .addSuccess(success(ChangedSource))
  .addError(failure(ValidationError, NotFound, LimitExceeded, ServiceUnavailable))
  .annotate(RequiredRole, "admin")

const remove = HttpApiEndpoint.del("remove", "/sources/:id")
  .setPath(path)
  .addSuccess(success(DeletedSource))
  .addError(
    failure(ValidationError, NotFound, ArtifactDeleteConflict, ArtifactDeleteUnavailable, ServiceUnavailable)
  )
  .annotate(RequiredRole, "admin")

const sync = HttpApiEndpoint.post("sync", "/sources/:id/sync")
  .setPath(path)
  .setPayload(SyncRequest)
  .addSuccess(success(SyncedSource), { status: 202 })
  .addError(failure(ValidationError, NotFound, LimitExceeded, ServiceUnavailable))
  .annotate(RequiredRole, "admin")

/** The registered readers, each with the form of its settings. */
const readers = HttpApiEndpoint.get("readers", "/source-readers")
  .addSuccess(success(Schema.Struct({ readers: Schema.Array(ReaderForm) })))
  .annotate(RequiredRole, "viewer")

/** Progress of a job of the source. */
const job = HttpApiEndpoint.get("job", "/sources/:id/jobs/:jobId")
  .setPath(Schema.Struct({ id: SourceId, jobId: IngestionJobId }))
  .addSuccess(success(Schema.Struct(IngestionJob.fields)))
  .addError(failure(ValidationError, NotFound))
  .annotate(RequiredRole, "viewer")

const sources = <const Id extends string>(id: Id) =>
  HttpApiGroup.make(id)
    .add(list)
    .add(create)
    .add(upload)
    .add(bulkUpload)
    .add(get)
    .add(patch)
    .add(remove)
    .add(sync)
    .add(job)
    .add(readers)

export class HostedSourcesApi extends sources("hostedSources").prefix("/api").middleware(SessionAuth) {}

export class ManagedSourcesApi extends managed(sources("managedSources"), "sources") {}
