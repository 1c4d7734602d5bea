/**
 * Looks for questions that agents cannot answer, for tenants that subscribe to `gap.found`: once an hour per tenant,
 * over the turns of an insights report.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { type FoundGap, ReportedGapStore } from "../../store/conversations/ReportedGaps.ts"
import { Insights, type UnansweredGroup } from "./Insights.ts"

/** Unanswered turns from which a group is reported. It is reported again at each doubling. */
const firstThreshold = 5
/** Maximum tenants of one sweep; the next sweep continues. */
const maxTenants = 10
/** Maximum turns that an event names. */
const maxExamples = 5

const thresholdOf = (count: number): number => {
  let threshold = firstThreshold
  while (threshold * 2 <= count) threshold *= 2
  return threshold
}

export class GapSearch extends Effect.Service<GapSearch>()("usecases/conversations/GapSearch", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const store = yield* ReportedGapStore
    const insights = yield* Insights

    const toFoundGap = ({ agentId, people, runIds }: UnansweredGroup, id: string): FoundGap => ({
      id,
      agentId,
      people,
      runIds,
      count: runIds.length,
      threshold: thresholdOf(runIds.length),
      examples: runIds.slice(0, maxExamples)
    })

    /** Reports groups that are new or have passed their next threshold. Returns their number. */
    const search = Effect.fn("GapSearch.search")(function* (scope: TenantScope) {
      // The tenant's own reports come first. The next search finds the same groups.
      const asked = yield* Effect.either(insights.unanswered(scope, firstThreshold))
      if (Either.isLeft(asked)) return 0
      const groups = asked.right
      return yield* sql
        .withTransaction(
          Effect.gen(function* () {
            const known = new Map((yield* store.list(scope)).map((gap) => [gap.id, gap]))
            const usedIds = new Set(known.keys())
            const keptIds: Array<string> = []
            let reported = 0
            for (const group of groups) {
              const turns = new Set<string>(group.runIds)
              const before = [...known.values()].find(({ runIds }) => runIds.some((id) => turns.has(id)))
              // A group that has split is reported once more.
              if (before !== undefined) known.delete(before.id)
              const fresh = usedIds.has(group.id) ? `${group.id}_${keptIds.length}` : group.id
              const found = toFoundGap(group, before?.id ?? fresh)
              usedIds.add(found.id)
              const isReported = before === undefined || found.threshold > before.threshold
              // The threshold is kept when a group shrinks, so that it is not reported again for the same size.
              const threshold = Math.max(found.threshold, before?.threshold ?? 0)
              yield* store.keep(scope, { ...found, threshold }, isReported)
              keptIds.push(found.id)
              if (isReported) reported += 1
            }
            yield* store.forget(scope, keptIds)
            return reported
          })
        )
        .pipe(Effect.orDie)
    })

    /** Returns true when tenants may still wait. */
    const sweep = Effect.gen(function* () {
      for (let done = 0; done < maxTenants; done++) {
        const claimed = yield* store.claim
        if (Option.isNone(claimed)) return false
        yield* search(claimed.value)
        yield* store.release(claimed.value)
      }
      return true
    }).pipe(Effect.withSpan("GapSearch.sweep"))

    return { search, sweep } as const
  })
}) {}
