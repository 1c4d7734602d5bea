import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { allows } from "../../domain/Access.ts"
import { ChatTurn } from "../../usecases/chat/ChatTurn.ts"
import { Api } from "../Api.ts"
import { CurrentKey } from "../Auth.ts"
import * as Sse from "../Sse.ts"

export const layer = HttpApiBuilder.group(Api, "chat", (handlers) =>
  Effect.map(ChatTurn, (turns) =>
    handlers
      .handle("complete", ({ payload }) => Effect.flatMap(CurrentKey, (key) => turns.complete(key, payload)))
      .handle("stream", ({ payload, request }) =>
        Effect.flatMap(CurrentKey, (key) =>
          Effect.map(turns.start(key, payload), (turn) =>
            Sse.response(turn, allows(key.permissions, "trace_read"), request.headers)
          )
        )
      )
  )
)
