/** Checks whether the passages that a reply cites support the reply. */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { Bill } from "../domain/billing/Cost.ts"
import type { Supported } from "../domain/chat/ChatTurn.ts"

/** A passage that a statement cites. */
export interface CitedPassage {
  /** Its number in the reply. */
  readonly index: number
  readonly title: string
  readonly text: string
}

/** A statement of the reply, without its marks. */
export interface Claim {
  readonly text: string
  /** The cited passages, at least one; together they have to support the claim. */
  readonly passages: ReadonlyArray<CitedPassage>
}

export interface Verdict {
  /** Null if the check is not possible, for example when claim and sources have different languages. */
  readonly supported: Supported | null
  /** Verbatim quotes that support the claim, at most one per passage. */
  readonly spans: ReadonlyArray<{ readonly index: number; readonly text: string }>
  /** Reasons against the claim, for the trace; without any text of claim or passages. */
  readonly reasons: ReadonlyArray<string>
}

export interface Checked {
  /** One for each claim, in order. */
  readonly verdicts: ReadonlyArray<Verdict>
  /** Tokens used by a model for the check; else 0. */
  readonly inputTokens: number
  readonly outputTokens: number
  /** Costs of the models that checked. */
  readonly bills?: ReadonlyArray<Bill>
}

export class GroundingChecker extends Context.Tag("capabilities/GroundingChecker")<
  GroundingChecker,
  {
    /** For the trace. */
    readonly name: string
    /**
     * Has a time-out and never fails: if a model or service does not answer, or `cancelled` completes before, word
     * overlap is used instead.
     */
    readonly check: (
      claims: ReadonlyArray<Claim>,
      cancelled?: Effect.Effect<unknown>
    ) => Effect.Effect<Checked>
  }
>() {}
