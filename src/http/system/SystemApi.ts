/** Liveness and readiness of the process. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as OpenApi from "@effect/platform/OpenApi"
import * as Schema from "effect/Schema"
import { ServiceUnavailable } from "../../domain/Errors.ts"
import { optional } from "../../domain/Optional.ts"
import { OpenReason } from "../Auth.ts"
import { failure, success } from "../Envelope.ts"

export const SystemApi = HttpApiGroup.make("system")
  .add(
    HttpApiEndpoint.get("healthz", "/healthz")
      .addSuccess(success(Schema.Struct({ status: Schema.Literal("ok") })))
      .annotate(OpenApi.Summary, "The process is up")
  )
  .add(
    HttpApiEndpoint.get("readyz", "/readyz")
      .addSuccess(
        success(
          Schema.Struct({
            status: Schema.Literal("ready"),
            checks: Schema.Array(Schema.Struct({ name: Schema.String, ok: Schema.Boolean })),
            queue: optional(Schema.Struct({ oldestWaitingSeconds: Schema.NullOr(Schema.Int) })),
            queues: optional(
              Schema.Array(
                Schema.Struct({ name: Schema.String, oldestWaitingSeconds: Schema.NullOr(Schema.Int) })
              )
            )
          })
        )
      )
      .addError(failure(ServiceUnavailable))
      .annotate(OpenApi.Summary, "Database, queue, migrations and search are ready; 503 while draining")
  )
  .annotateEndpoints(OpenReason, "Load balancers have no key, and learn nothing but names of checks.")
