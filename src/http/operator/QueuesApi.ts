/** The queues of background jobs, for the operator. Payloads are never shown. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as Schema from "effect/Schema"
import { Conflict, NotFound, ServiceUnavailable, ValidationError } from "../../domain/Errors.ts"
import { QueueJobId } from "../../domain/Ids.ts"
import { JobState, JobSummary, QueueCounts } from "../../domain/knowledge/Job.ts"
import { nextCursor, pageParams } from "../../domain/Page.ts"
import { optional } from "../../domain/Optional.ts"
import { OperatorAuth } from "../Auth.ts"
import { failure, success } from "../Envelope.ts"

const list = HttpApiEndpoint.get("list", "/api/operator/queues")
  .addSuccess(success(Schema.Struct({ queues: Schema.Array(QueueCounts) })))
  .addError(failure(ServiceUnavailable))

/** Newest first; 404 when there is no such queue. */
const jobs = HttpApiEndpoint.get("jobs", "/api/operator/queues/:name/jobs")
  .setPath(Schema.Struct({ name: Schema.String }))
  .setUrlParams(
    Schema.Struct({
      state: optional(JobState),
      ...pageParams.fields
    })
  )
  .addSuccess(success(Schema.Struct({ jobs: Schema.Array(JobSummary), nextCursor })))
  .addError(failure(ValidationError, NotFound, ServiceUnavailable))

/** Queues a failed job again, with all its attempts. 409 when it has not failed. */
const retry = HttpApiEndpoint.post("retry", "/api/operator/queues/:name/jobs/:id/retry")
  .setPath(Schema.Struct({ name: Schema.String, id: QueueJobId }))
  .addSuccess(success(Schema.Struct({ job: JobSummary })))
  .addError(failure(ValidationError, NotFound, Conflict, ServiceUnavailable))

export class QueuesApi extends HttpApiGroup.make("queues")
  .add(list)
  .add(jobs)
  .add(retry)
  .middleware(OperatorAuth) {}
