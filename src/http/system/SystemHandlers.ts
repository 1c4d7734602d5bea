import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { ServiceUnavailable } from "../../domain/Errors.ts"
import { Api } from "../Api.ts"
import { Readiness, type Report } from "./Readiness.ts"

const readyOrUnavailable = ({ ready, checks, queue, queues }: Report) =>
  ready
    ? Effect.succeed({
        status: "ready",
        checks,
        ...(queue === undefined ? {} : { queue }),
        ...(queues === undefined ? {} : { queues })
      } as const)
    : Effect.fail(new ServiceUnavailable({ message: "The service is not ready.", details: { checks } }))

export const layer = HttpApiBuilder.group(Api, "system", (handlers) =>
  Effect.map(Readiness, ({ check }) =>
    handlers
      .handle("healthz", () => Effect.succeed({ status: "ok" } as const))
      .handle("readyz", () => Effect.flatMap(check, readyOrUnavailable))
  )
)
