/** Budgets for model costs: of a tenant, an agent or a key, per day or month (UTC). */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { AgentId, KeyId, typeId } from "../Ids.ts"
import { optional } from "../Optional.ts"
import { described, Text } from "../Text.ts"
import { Version } from "../Version.ts"

export const BudgetId = Text.pipe(Schema.minLength(1), Schema.brand("BudgetId"))
export type BudgetId = typeof BudgetId.Type
export const newBudgetId = Effect.map(Clock.currentTimeMillis, (now) => BudgetId.make(typeId("bgt", now)))

/** A calendar day or month, in UTC. */
const BudgetPeriod = Schema.Literal("day", "month")

const NanoUsd = Schema.Int.pipe(Schema.nonNegative())
/** Up to a million US dollars. */
const Limit = described(
  Schema.Int.pipe(Schema.between(1, 1_000_000_000_000_000)),
  "Billionths of a US dollar"
)

export const Budget = Schema.Struct({
  id: BudgetId,
  /** The agent or the key whose turns count; if both are null, all turns of the tenant count. */
  agentId: Schema.NullOr(AgentId),
  keyId: Schema.NullOr(KeyId),
  period: BudgetPeriod,
  limitNanoUsd: NanoUsd,
  /** Cost of the turns in the current period since the budget was set. */
  spentNanoUsd: NanoUsd,
  /** Amount reserved for running turns until they have settled. */
  reservedNanoUsd: NanoUsd,
  /** End of the current period, when the spent amount returns to 0. */
  resetsAt: Schema.DateTimeUtc,
  version: Version,
  createdAt: Schema.DateTimeUtc
}).annotations({ identifier: "Budget" })
export type Budget = typeof Budget.Type

/** For the whole tenant, unless it names an agent or a key. */
export const CreateBudget = Schema.Struct({
  agentId: optional(AgentId),
  keyId: optional(KeyId),
  period: BudgetPeriod,
  limitNanoUsd: Limit
}).pipe(
  Schema.filter(({ agentId, keyId }) =>
    agentId === undefined || keyId === undefined
      ? undefined
      : { path: ["keyId"], message: "Expected an agent or a key, not both" }
  )
)
export type CreateBudget = typeof CreateBudget.Type

export const PatchBudget = Schema.Struct({ limitNanoUsd: optional(Limit) })
export type PatchBudget = typeof PatchBudget.Type

/** The exhausted budget that refuses a turn. It does not contain the limit, which end users must not see. */
export const ExhaustedBudget = Schema.Struct({
  of: Schema.Literal("tenant", "agent", "key"),
  period: BudgetPeriod,
  /** ISO 8601, UTC. */
  resetsAt: Schema.String
})
export type ExhaustedBudget = typeof ExhaustedBudget.Type
