import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { AuditTrail } from "../../../usecases/accounts/AuditTrail.ts"
import { Replays, replayAccess } from "../../../usecases/chat/replay/Replays.ts"
import { Api } from "../../Api.ts"
import { CurrentCaller } from "../../Auth.ts"
import { RequestId } from "../../server/RequestId.ts"

export const ReplaysHandlers = HttpApiBuilder.group(Api, "replays", (handlers) =>
  Effect.gen(function* () {
    const replays = yield* Replays
    const audit = yield* AuditTrail
    return handlers.handle("create", ({ path: { id }, payload }) =>
      Effect.gen(function* () {
        const { actor, scope } = yield* replayAccess(yield* CurrentCaller, id)
        const by = { tenantId: scope.tenantId, actor, requestId: yield* RequestId }
        return {
          runs: yield* replays.run(scope, payload, (runId) => audit.record(by, "agent_run.replay", runId))
        }
      })
    )
  })
)
