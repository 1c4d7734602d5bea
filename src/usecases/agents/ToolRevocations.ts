/** Revokes the tokens of an agent's tools once the agent has been deleted. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import { withOwner } from "../../concurrency/CurrentOwner.ts"
import { FairLimiter } from "../../concurrency/FairLimiter.ts"
import { ToolStore } from "../../store/agents/Tools.ts"
import { ToolTokens } from "./ToolTokens.ts"

/** Maximum concurrent revocations, those of one tenant, and those that may wait. */
const limits = { permits: 64, maxPermitsPerOwner: 4, maxWaiting: 1_024, maxWait: Duration.minutes(1) }
/** Longest time that a deletion waits for its revocations. They continue afterwards. */
const maxWait = Duration.seconds(3)

export class ToolRevocations extends Effect.Service<ToolRevocations>()("usecases/agents/ToolRevocations", {
  scoped: Effect.gen(function* () {
    const tools = yield* ToolStore
    const tokens = yield* ToolTokens
    const scope = yield* Effect.scope
    const limiter = new FairLimiter({ name: "tool-revocations", ...limits })

    /**
     * Removes the tokens of the agent's tools, in the transaction that deletes the agent. Run the result after the
     * commit: it starts to revoke the tokens, and returns an effect that waits for that, at most {@link maxWait}. A
     * server that does not answer is logged.
     */
    const ofAgent = Effect.fn("ToolRevocations.ofAgent")(function* ({ agentId, tenantId }: AgentScope) {
      const revocations = yield* Effect.forEach(yield* tools.holdAll({ tenantId, agentId }), (tool) =>
        Effect.map(tokens.take({ tenantId }, tool), (revoke) =>
          Option.getOrElse(revoke, () => Effect.void).pipe(
            limiter.withPermit(tenantId),
            Effect.catchTag("LimitReached", () =>
              Effect.logWarning("A tool's token was removed, but not revoked: too many are being revoked", {
                tenantId,
                tool: tool.id
              })
            )
          )
        )
      )
      return Effect.all(revocations, { concurrency: "unbounded", discard: true }).pipe(
        withOwner(tenantId),
        Effect.interruptible,
        Effect.forkIn(scope),
        Effect.map((fiber) => Effect.asVoid(Effect.timeoutOption(Fiber.join(fiber), maxWait)))
      )
    })

    return { ofAgent } as const
  })
}) {}
