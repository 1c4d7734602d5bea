import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { AuditTrail } from "../../../usecases/accounts/AuditTrail.ts"
import { Api } from "../../Api.ts"
import { listPage } from "../../Lists.ts"

export const AuditHandlers = HttpApiBuilder.group(Api, "audit", (handlers) =>
  Effect.map(AuditTrail, (trail) =>
    handlers.handle("list", ({ urlParams }) =>
      listPage("entries", { route: "/api/audit" }, urlParams, trail.list)
    )
  )
)
