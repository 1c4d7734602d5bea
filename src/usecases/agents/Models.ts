/** The models that agents may use. */
import * as Effect from "effect/Effect"
import { ModelRuntime } from "../../capabilities/ModelRuntime.ts"

/** The default model, and the known names, each once. */
export const knownModels = Effect.map(ModelRuntime, ({ defaultModel, models = [] }) => ({
  default: defaultModel,
  models: [...new Set([defaultModel, ...models])]
}))
