/** The checks of `/readyz`. */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"

export interface Report {
  /** Also false while draining. */
  readonly ready: boolean
  /** Names are public: `accepting`, `database`, `queue`, `redis`, `migrations`, `search`. */
  readonly checks: ReadonlyArray<{ readonly name: string; readonly ok: boolean }>
  /** Waiting time of the oldest queued ingestion job; null when none waits. */
  readonly queue?: { readonly oldestWaitingSeconds: number | null }
  /** Waiting time of each queue's oldest due job; null when none is due. */
  readonly queues?: ReadonlyArray<{ readonly name: string; readonly oldestWaitingSeconds: number | null }>
}

export class Readiness extends Context.Tag("http/Readiness")<
  Readiness,
  {
    /** The provider limits its duration. A check that takes too long is not `ok`. */
    readonly check: Effect.Effect<Report>
  }
>() {}
