import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { UsageReport } from "../../../usecases/billing/UsageReport.ts"
import { Api } from "../../Api.ts"
import { CurrentKey } from "../../Auth.ts"

export const layer = HttpApiBuilder.group(Api, "usage", (handlers) =>
  Effect.map(UsageReport, (report) =>
    handlers.handle("current", () => Effect.flatMap(CurrentKey, report.ofAgent))
  )
)
