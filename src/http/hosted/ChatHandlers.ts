import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { Gone } from "../../domain/Errors.ts"
import { Attachments } from "../../usecases/widget/Attachments.ts"
import { Callers } from "../../usecases/widget/Callers.ts"
import { HostedTurn } from "../../usecases/widget/HostedTurn.ts"
import { Api } from "../Api.ts"
import { CurrentCaller } from "../Auth.ts"
import * as Sse from "../Sse.ts"
import * as HostedForm from "./HostedForm.ts"

/** The hosted stream. */
export const HostedChatHandlers = HttpApiBuilder.group(Api, "hostedChat", (handlers) =>
  Effect.gen(function* () {
    const turns = yield* HostedTurn
    const attachments = yield* Attachments
    const callers = yield* Callers

    return handlers.handleRaw("stream", ({ request }) =>
      Effect.gen(function* () {
        const { files, turn } = yield* HostedForm.read(request, attachments.stage)
        const { full, scope } = yield* callers.standing(yield* CurrentCaller, turn.agentId)
        return Sse.response(yield* turns.start(scope, turn, files), full, request.headers)
        // What was taken in and not kept goes before the answer does.
      }).pipe(Effect.scoped)
    )
  })
)

const gone = (instead: string) =>
  Effect.fail(new Gone({ message: `This route has moved to the public API: POST {base_url}${instead}.` }))

/** The shims. */
export const ShimsHandlers = HttpApiBuilder.group(Api, "shims", (handlers) =>
  handlers.handle("chat", () => gone("/chat")).handle("retrieve", () => gone("/retrieve"))
)
