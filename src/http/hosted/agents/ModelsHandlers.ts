import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import * as Models from "../../../usecases/agents/Models.ts"
import { Api, type GroupHandlers } from "../../Api.ts"

const group = (handlers: GroupHandlers<"models">) =>
  Effect.map(Models.knownModels, (known) => handlers.handle("list", () => Effect.succeed(known)))

export const ModelsHandlers = HttpApiBuilder.group(Api, "models", group)
export const ManagedModelsHandlers = HttpApiBuilder.group(Api, "managedModels", group)
