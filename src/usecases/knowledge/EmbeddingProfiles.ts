/**
 * Moves agents to the configured embedding model without downtime. Queues a few sources at a time whose vectors are
 * missing, moves agents whose vectors are complete, and removes vectors of profiles no longer used.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { Embedder } from "../../capabilities/Embedder.ts"
import { JobQueue } from "../../capabilities/JobQueue.ts"
import { EmbeddingProfileStore } from "../../store/knowledge/EmbeddingProfiles.ts"

/** Maximum pending embedding jobs; the sweep adds no more. */
const maxPendingJobs = 20
/** Pause before a permanent failure is tried again: the API key may have been corrected. */
const failureRetryDelay = Duration.hours(1)
/** How long vectors of the previous profile are kept, in case the change is undone. */
const previousProfileRetention = Duration.days(7)
/** Maximum vectors removed by one statement. */
const maxRemovedVectors = 2_000

export class EmbeddingProfiles extends Effect.Service<EmbeddingProfiles>()(
  "usecases/knowledge/EmbeddingProfiles",
  {
    effect: Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const profiles = yield* EmbeddingProfileStore
      const queue = yield* JobQueue
      const embedder = yield* Embedder
      const { profile } = embedder

      /** Makes this process's model the target profile. Call once, when the process starts. */
      const setTarget = profiles.setTarget(profile)

      const queueSourcesWithoutVectors = Effect.gen(function* () {
        const counts = yield* queue.counts
        const pending = counts.find(({ name }) => name === "embedding")
        const free =
          maxPendingJobs - (pending === undefined ? 0 : pending.waiting + pending.active + pending.delayed)
        if (free <= 0) return maxPendingJobs
        return yield* Effect.gen(function* () {
          if (!(yield* profiles.tryLock)) return 0
          const sources = yield* profiles.sourcesWithoutVectors(embedder, free, failureRetryDelay)
          yield* Effect.forEach(
            sources,
            ({ id, tenantId }) =>
              queue.enqueue("embedding", { tenantId, sourceId: id }, { serialKey: id, owner: tenantId }),
            { discard: true }
          )
          return sources.length
        }).pipe(sql.withTransaction)
      }).pipe(Effect.catchTag("SqlError", Effect.die))

      /** Returns true when there is more to do soon. Does nothing in a process whose model is not the target. */
      const sweep = Effect.gen(function* () {
        if ((yield* profiles.target) !== profile) return false
        const agents = yield* profiles.agentsToMove(profile)
        const moved = yield* Effect.forEach(agents, (agent) => profiles.move(agent, embedder))
        for (const [index, { agentId }] of agents.entries()) {
          if (moved[index] === true) {
            yield* Effect.logInfo("An agent answers with another embedding model").pipe(
              Effect.annotateLogs({ agentId, profile })
            )
          }
        }
        return (yield* queueSourcesWithoutVectors) > 0
      }).pipe(Effect.withSpan("EmbeddingProfiles.sweep"))

      /** Removes vectors that no agent has used for a week. Returns true when there may be more. */
      const removeUnused = Effect.gen(function* () {
        if ((yield* profiles.target) !== profile) return false
        return (
          (yield* profiles.removeOldVectors(profile, previousProfileRetention, maxRemovedVectors)) ===
          maxRemovedVectors
        )
      }).pipe(Effect.withSpan("EmbeddingProfiles.forget"))

      return { setTarget, sweep, removeUnused } as const
    })
  }
) {}
