import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { allows } from "../../../domain/accounts/Access.ts"
import { turnOf } from "../../../domain/chat/UiChat.ts"
import { ChatRequests } from "../../../usecases/chat/ChatRequests.ts"
import { Api } from "../../Api.ts"
import { CurrentKey } from "../../Auth.ts"
import * as Sse from "../../Sse.ts"

export const layer = HttpApiBuilder.group(Api, "chat", (handlers) =>
  Effect.map(ChatRequests, (chat) =>
    handlers
      .handle("complete", ({ headers, payload }) =>
        Effect.flatMap(CurrentKey, (key) => chat.complete(key, turnOf(payload), headers["idempotency-key"]))
      )
      .handle("stream", ({ headers, payload, request }) =>
        Effect.flatMap(CurrentKey, (key) =>
          Effect.map(chat.start(key, turnOf(payload), headers["idempotency-key"]), (turn) =>
            Sse.response(turn, allows(key.permissions, "trace_read"), request.headers)
          )
        )
      )
  )
)
