import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { allows } from "../../../domain/accounts/Access.ts"
import { AgentRuns } from "../../../usecases/chat/AgentRuns.ts"
import { Api } from "../../Api.ts"
import { CurrentKey } from "../../Auth.ts"
import { RequestId } from "../../server/RequestId.ts"
import * as Sse from "../../Sse.ts"

export const layer = HttpApiBuilder.group(Api, "agentRuns", (handlers) =>
  Effect.map(AgentRuns, (runs) =>
    handlers
      .handle("trace", ({ path, urlParams: { cursor = 0, limit = 20 } }) =>
        Effect.flatMap(Effect.all([CurrentKey, RequestId]), ([key, requestId]) =>
          runs.read(key, path.runId, { limit, after: cursor }, requestId)
        )
      )
      .handle("stop", ({ path }) => Effect.flatMap(CurrentKey, (key) => runs.stop(key, path.runId)))
      .handle("follow", ({ path, request, urlParams: { after = 0 } }) =>
        Effect.flatMap(CurrentKey, (key) =>
          Effect.map(runs.follow(key, path.runId), (turn) =>
            Sse.response(turn, allows(key.permissions, "trace_read"), request.headers, after)
          )
        )
      )
      .handle("followChat", ({ path, request }) =>
        Effect.flatMap(CurrentKey, (key) =>
          Effect.map(
            runs.followChat(key, path.chatId),
            Option.match({
              onNone: () => HttpServerResponse.empty({ status: 204 }),
              onSome: (turn) => Sse.response(turn, allows(key.permissions, "trace_read"), request.headers)
            })
          )
        )
      )
  )
)
