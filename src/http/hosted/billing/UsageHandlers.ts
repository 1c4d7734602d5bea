import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { UsageReport } from "../../../usecases/billing/UsageReport.ts"
import { Api } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"

/** What the tenant has used. */
export const HostedUsageHandlers = HttpApiBuilder.group(Api, "hostedUsage", (handlers) =>
  Effect.map(UsageReport, (report) =>
    handlers.handle("get", () => Effect.flatMap(CurrentUser, report.ofTenant))
  )
)
