/** The agents of a tenant as one configuration file. */
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
import { optional } from "../../domain/Optional.ts"
import { ManageAuth, RequiredTokenScope, RequiredRole } from "../Auth.ts"
import { failure, success } from "../Envelope.ts"

const Parts = Schema.Struct({
  /** Leaves out sources, tools and other parts, which may be more than one file can hold. */
  agentsOnly: optional(Schema.BooleanFromString)
})

/** The configuration file of the stored agents. */
const read = HttpApiEndpoint.get("read", "/config")
  .setUrlParams(Parts)
  .addSuccess(success(Schema.Struct({ config: Configuration, revision: Schema.String })))
  .addError(failure(Conflict))

/**
 * Returns the planned changes, or makes them in one transaction. 409 for an outdated plan, and while another file is
 * being applied.
 */
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
  .annotateEndpoints(RequiredTokenScope, "agents") {}
