/** For agents whose tools have no tokens that could be revoked. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { ToolRevocations } from "../src/usecases/agents/ToolRevocations.ts"

export const layerNoConnections = Layer.succeed(
  ToolRevocations,
  ToolRevocations.make({ ofAgent: () => Effect.succeed(Effect.succeed(Effect.void)) })
)
