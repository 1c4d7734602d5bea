/** Replays of stored turns with current knowledge. A replay has no side effects. */
import * as Schema from "effect/Schema"
import { RunId } from "../Ids.ts"
import { Version } from "../Version.ts"
import { Citation } from "./ChatTurn.ts"

/** Maximum number of runs of one request. */
const maxRuns = 20

/** Body of `POST /api/agents/:id/replays`. */
export const ReplayRequest = Schema.Struct({
  runIds: Schema.Array(RunId).pipe(Schema.minItems(1), Schema.maxItems(maxRuns)),
  /** The agent's version; default: the current one. */
  version: Schema.optionalWith(Version, { exact: true })
})
export type ReplayRequest = typeof ReplayRequest.Type

/** How a turn ended: with a reply, or without one because of `failure`. */
export const TurnOutcome = Schema.Struct({
  reply: Schema.NullOr(Schema.String),
  citations: Schema.Array(Citation),
  failure: Schema.NullOr(Schema.String),
  inputTokens: Schema.Int,
  outputTokens: Schema.Int
})
export type TurnOutcome = typeof TurnOutcome.Type

/**
 * The result of a replay. `same`: the same reply with the same citations. `diverged`: it requested something that was
 * not recorded, named in `reason`, and was ended there.
 */
export const ReplayedRun = Schema.Struct({
  runId: RunId,
  outcome: Schema.Literal("same", "changed", "diverged"),
  reason: Schema.NullOr(Schema.String),
  before: TurnOutcome,
  after: Schema.NullOr(TurnOutcome)
})
export type ReplayedRun = typeof ReplayedRun.Type

/** `data` of the answer. */
export const ReplayedRuns = Schema.Struct({ runs: Schema.Array(ReplayedRun) })
