import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { Sources } from "../../../usecases/knowledge/Sources.ts"
import { Api } from "../../Api.ts"
import { CurrentKey } from "../../Auth.ts"

export const layer = HttpApiBuilder.group(Api, "ingestionJobs", (handlers) =>
  Effect.map(Sources, (sources) =>
    handlers.handle("get", ({ path }) => Effect.flatMap(CurrentKey, (key) => sources.job(key, path.id)))
  )
)
