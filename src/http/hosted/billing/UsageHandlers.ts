import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { UsageReport } from "../../../usecases/billing/UsageReport.ts"
import { Api, type GroupHandlers } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"

const group = (handlers: GroupHandlers<"hostedUsage">) =>
  Effect.map(UsageReport, (report) =>
    handlers.handle("get", () => Effect.flatMap(CurrentUser, report.ofTenant))
  )

export const HostedUsageHandlers = HttpApiBuilder.group(Api, "hostedUsage", group)
export const ManagedUsageHandlers = HttpApiBuilder.group(Api, "managedUsage", group)
