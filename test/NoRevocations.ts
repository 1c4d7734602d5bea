/** Revokes no tokens, for agents whose tools have none. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { ToolRevocations } from "../src/usecases/agents/ToolRevocations.ts"

export const layerNoRevocations = Layer.succeed(
  ToolRevocations,
  ToolRevocations.make({ ofAgent: () => Effect.succeed(Effect.succeed(Effect.void)) })
)
