/** Scheduled syncs (`config.refresh`): queues a job for each source that is due, as a sync request would. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { withOwner } from "../../concurrency/CurrentOwner.ts"
import { RefreshStore } from "../../store/knowledge/Refreshes.ts"
import { Sources } from "./Sources.ts"

/** Maximum sources that one sweep queues; the next sweep continues. */
const maxSourcesPerSweep = 200
/** Pause before a source is tried again whose tenant has no ingestion jobs left. */
const limitRetryDelay = Duration.hours(1)
const limitReachedMessage = "The scheduled reading waits: the ingestion jobs of this period are used up."

export class Refresh extends Effect.Service<Refresh>()("usecases/knowledge/Refresh", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const store = yield* RefreshStore
    const sources = yield* Sources

    /** Processes one due source in a transaction. False when none is due. */
    const syncNextDue = Effect.gen(function* () {
      const now = yield* DateTime.now
      const due = yield* store.claim(now)
      if (Option.isNone(due)) return false
      const { id, ...scope } = due.value
      yield* sources.sync(scope, id, { force: false }).pipe(
        // The job is the tenant's, so that tenants share the workers.
        withOwner(scope.tenantId),
        Effect.zipRight(store.recordRefresh(scope, id, now)),
        Effect.catchTags({
          LIMIT_EXCEEDED: () => store.postpone(scope, id, now, limitRetryDelay, limitReachedMessage),
          NOT_FOUND: () => Effect.void
        })
      )
      return true
    }).pipe(sql.withTransaction, Effect.catchTag("SqlError", Effect.die))

    /**
     * Queues jobs for due sources. Safe to run in several processes at once. Returns the number of sources processed.
     */
    const sweep = Effect.fn("Refresh.sweep")(function* () {
      let done = 0
      while (done < maxSourcesPerSweep && (yield* syncNextDue)) done++
      return done
    })

    return { sweep } as const
  })
}) {}
