/** Passages that contradict or repeat each other or are stale, and the value of each source. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as Schema from "effect/Schema"
import { NotFound, ServiceUnavailable, ValidationError } from "../../../domain/Errors.ts"
import { AgentId } from "../../../domain/Ids.ts"
import { optional } from "../../../domain/Optional.ts"
import {
  Finding,
  FindingId,
  FindingKind,
  FindingPage,
  Month,
  SourceValue
} from "../../../domain/knowledge/Finding.ts"
import { nextCursor, pageParams } from "../../../domain/Page.ts"
import { managed, RequiredRole, SessionAuth } from "../../Auth.ts"
import { failure, success } from "../../Envelope.ts"

const agentPath = Schema.Struct({ id: AgentId })

/** Highest weight first: contradictions, then passages that repeat others. */
const list = HttpApiEndpoint.get("list", "/agents/:id/findings")
  .setPath(agentPath)
  .setUrlParams(
    Schema.Struct({
      kind: optional(FindingKind),
      /** Lists dismissed findings instead. */
      dismissed: optional(Schema.BooleanFromString),
      ...pageParams.fields
    })
  )
  .addSuccess(success(FindingPage))
  .addError(failure(ValidationError, NotFound))
  .annotate(RequiredRole, "viewer")

const dismiss = HttpApiEndpoint.post("dismiss", "/agents/:id/findings/:finding/dismiss")
  .setPath(Schema.Struct({ id: AgentId, finding: FindingId }))
  .addSuccess(success(Schema.Struct({ finding: Finding })))
  .addError(failure(ValidationError, NotFound, ServiceUnavailable))
  .annotate(RequiredRole, "admin")

/** Undoes a dismissal. */
const restore = HttpApiEndpoint.post("restore", "/agents/:id/findings/:finding/restore")
  .setPath(Schema.Struct({ id: AgentId, finding: FindingId }))
  .addSuccess(success(Schema.Struct({ finding: Finding })))
  .addError(failure(ValidationError, NotFound, ServiceUnavailable))
  .annotate(RequiredRole, "admin")

const values = HttpApiEndpoint.get("values", "/agents/:id/source-values")
  .setPath(agentPath)
  .setUrlParams(Schema.Struct({ month: optional(Month), ...pageParams.fields }))
  .addSuccess(
    success(
      Schema.Struct({
        month: Month,
        sources: Schema.Array(SourceValue),
        nextCursor
      })
    )
  )
  .addError(failure(ValidationError, NotFound))
  .annotate(RequiredRole, "viewer")

const findings = <const Id extends string>(id: Id) =>
  HttpApiGroup.make(id).add(list).add(dismiss).add(restore).add(values)

export class FindingsApi extends findings("findings").prefix("/api").middleware(SessionAuth) {}

export class ManagedFindingsApi extends managed(findings("managedFindings"), "agents") {}
