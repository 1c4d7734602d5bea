/** Whether the passages that a reply cites say what the reply says. */
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
  /** What it cites, at least one; together they have to say it. */
  readonly passages: ReadonlyArray<CitedPassage>
}

export interface Verdict {
  /** Null where it cannot be told, as of a statement in another language than its sources. */
  readonly supported: Supported | null
  /** Where passages say it, word for word as they have it; at most one a passage. */
  readonly spans: ReadonlyArray<{ readonly index: number; readonly text: string }>
  /** What speaks against it, in a few words for the trace; holds nothing of the texts. */
  readonly reasons: ReadonlyArray<string>
}

export interface Checked {
  /** One for each claim, in order. */
  readonly verdicts: ReadonlyArray<Verdict>
  /** Of a model that was asked; else 0. */
  readonly inputTokens: number
  readonly outputTokens: number
  /** What models that were asked cost. */
  readonly bills?: ReadonlyArray<Bill>
}

export class GroundingChecker extends Context.Tag("capabilities/GroundingChecker")<
  GroundingChecker,
  {
    /** For the trace. */
    readonly name: string
    /** Bounded in time. Never fails: what a model or a service does not tell, words do. */
    readonly check: (claims: ReadonlyArray<Claim>) => Effect.Effect<Checked>
  }
>() {}
