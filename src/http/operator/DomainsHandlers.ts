import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import type { Domain } from "../../domain/accounts/SingleSignOn.ts"
import type { TenantId } from "../../domain/Ids.ts"
import { AuditTrail } from "../../usecases/accounts/AuditTrail.ts"
import { SingleSignOn } from "../../usecases/accounts/SingleSignOn.ts"
import { Api } from "../Api.ts"
import { operatorActor } from "./OperatorActor.ts"

export const DomainsHandlers = HttpApiBuilder.group(Api, "domains", (handlers) =>
  Effect.gen(function* () {
    const settings = yield* SingleSignOn
    const audit = yield* AuditTrail
    const setConfirmed = (
      { domain, id }: { readonly id: TenantId; readonly domain: Domain },
      action: "confirm" | "withdraw"
    ) =>
      Effect.gen(function* () {
        const by = yield* operatorActor(id)
        const confirmed = action === "confirm"
        const change = settings.confirm({ tenantId: id }, domain, confirmed)
        yield* audit.change(by, `domain.${action}`, change, domain)
        return { domain, confirmed }
      })
    return handlers
      .handle("confirm", ({ path }) => setConfirmed(path, "confirm"))
      .handle("withdraw", ({ path }) => setConfirmed(path, "withdraw"))
  })
)
