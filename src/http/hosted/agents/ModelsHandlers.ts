import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { ModelRuntime } from "../../../capabilities/ModelRuntime.ts"
import { Api, type GroupHandlers } from "../../Api.ts"

const group = (handlers: GroupHandlers<"models">) =>
  Effect.map(ModelRuntime, ({ defaultModel, models = [] }) =>
    handlers.handle("list", () =>
      Effect.succeed({ default: defaultModel, models: [...new Set([defaultModel, ...models])] })
    )
  )

export const ModelsHandlers = HttpApiBuilder.group(Api, "models", group)
export const ManagedModelsHandlers = HttpApiBuilder.group(Api, "managedModels", group)
