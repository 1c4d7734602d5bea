import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { Gone } from "../../../domain/Errors.ts"
import { AgentRuns } from "../../../usecases/chat/AgentRuns.ts"
import { Attachments } from "../../../usecases/chat/widget/Attachments.ts"
import { Callers } from "../../../usecases/chat/widget/Callers.ts"
import { HostedTurn } from "../../../usecases/chat/widget/HostedTurn.ts"
import { Api } from "../../Api.ts"
import { CurrentCaller } from "../../Auth.ts"
import * as Sse from "../../Sse.ts"
import * as HostedForm from "./HostedForm.ts"

/** The hosted stream. */
export const HostedChatHandlers = HttpApiBuilder.group(Api, "hostedChat", (handlers) =>
  Effect.gen(function* () {
    const turns = yield* HostedTurn
    const attachments = yield* Attachments
    const callers = yield* Callers
    const runs = yield* AgentRuns

    return handlers
      .handleRaw("stream", ({ request }) =>
        Effect.gen(function* () {
          const { files, turn } = yield* HostedForm.read(request, attachments.stage)
          const access = yield* callers.resolve(yield* CurrentCaller, turn.agentId)
          return Sse.response(yield* turns.start(access, turn, files), access.full, request.headers)
          // Received files that were not kept are removed before the response.
        }).pipe(Effect.scoped)
      )
      .handle("stop", ({ path: { runId }, urlParams: { agentId } }) =>
        Effect.gen(function* () {
          const { scope } = yield* callers.resolve(yield* CurrentCaller, agentId)
          return yield* runs.stop(scope, runId)
        })
      )
      .handle("follow", ({ path: { runId }, request, urlParams: { agentId } }) =>
        Effect.gen(function* () {
          const { full, scope } = yield* callers.resolve(yield* CurrentCaller, agentId)
          return Sse.response(yield* runs.follow(scope, runId), full, request.headers)
        })
      )
  })
)

const gone = (instead: string) =>
  Effect.fail(new Gone({ message: `This route has moved to the public API: POST {base_url}${instead}.` }))

/** The removed routes. */
export const RemovedRoutesHandlers = HttpApiBuilder.group(Api, "shims", (handlers) =>
  handlers.handle("chat", () => gone("/chat")).handle("retrieve", () => gone("/retrieve"))
)
