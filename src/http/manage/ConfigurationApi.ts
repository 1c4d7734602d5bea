/** The agents of a tenant as one file. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as Schema from "effect/Schema"
import { ApplyRequest, Configuration, Plan } from "../../domain/agents/Configuration.ts"
import {
  ArtifactDeleteConflict,
  ArtifactDeleteUnavailable,
  Conflict,
  LimitExceeded,
  ServiceUnavailable,
  ValidationError
} from "../../domain/Errors.ts"
import { ManageAuth, Managed, RequiredRole } from "../Auth.ts"
import { failure, success } from "../Envelope.ts"

const Parts = Schema.Struct({
  /** The settings of agents alone: there may be more of sources, tools and the like than one file holds. */
  agentsOnly: Schema.optionalWith(Schema.BooleanFromString, { exact: true })
})

/** The file of what there is. */
const read = HttpApiEndpoint.get("read", "/config")
  .setUrlParams(Parts)
  .addSuccess(success(Schema.Struct({ config: Configuration, revision: Schema.String })))
  .addError(failure(Conflict))

/** Says what would change, or changes it in one transaction. 409 for a plan that is out of date, and beside another one. */
const apply = HttpApiEndpoint.post("apply", "/apply")
  .setPayload(ApplyRequest)
  .addSuccess(success(Schema.Struct({ plan: Plan, applied: Schema.Boolean })))
  .addError(
    failure(
      ValidationError,
      Conflict,
      ServiceUnavailable,
      LimitExceeded,
      ArtifactDeleteConflict,
      ArtifactDeleteUnavailable
    )
  )

export class ConfigurationApi extends HttpApiGroup.make("configuration")
  .add(read)
  .add(apply)
  .prefix("/api/manage/v1")
  .middleware(ManageAuth)
  .annotateEndpoints(RequiredRole, "admin")
  .annotateEndpoints(Managed, "agents") {}
