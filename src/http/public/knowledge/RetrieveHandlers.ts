import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { Retrieve } from "../../../usecases/knowledge/Retrieve.ts"
import { Api } from "../../Api.ts"
import { CurrentKey } from "../../Auth.ts"

export const layer = HttpApiBuilder.group(Api, "retrieve", (handlers) =>
  Effect.map(Retrieve, (retrieve) =>
    handlers.handle("retrieve", ({ payload }) =>
      Effect.flatMap(CurrentKey, (key) => retrieve.run(key, payload))
    )
  )
)
