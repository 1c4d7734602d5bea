import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { VisitorTokens } from "../../../usecases/chat/widget/VisitorTokens.ts"
import { Api } from "../../Api.ts"
import { CurrentKey } from "../../Auth.ts"

export const layer = HttpApiBuilder.group(Api, "visitorTokens", (handlers) =>
  Effect.map(VisitorTokens, (tokens) =>
    handlers.handle("create", ({ payload }) =>
      Effect.flatMap(CurrentKey, (key) => tokens.issue(key, payload))
    )
  )
)
