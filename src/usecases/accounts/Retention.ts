/** Retention periods of tenants and of the installation, and the sweeps that remove older data. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { keepsAll, type PatchRetention, type Retention, shorter } from "../../domain/accounts/Retention.ts"
import { type Expiry, ExpiredRows } from "../../store/accounts/ExpiredRows.ts"
import { type Claimed, RetentionStore } from "../../store/accounts/Retention.ts"
import { UnusedPassages } from "../../store/chat/UnusedPassages.ts"
import { addWeeks, dropWeeks } from "../../store/Partitions.ts"

/** Maximum batches of one sweep. Tenants take turns, one batch each. */
const maxBatches = 50

/** Maximum days for which mails about failed jobs are kept, which belong to no tenant. */
const maxMailDays = 90

/** Days after which no run of a week is running any more. */
const daysUntilSettled = 1
/** Days after a limit of the installation until the week that holds a day has been dropped. */
const daysUntilDropped = 7 + daysUntilSettled

/** Limits of the whole installation. For each tenant and kind the shorter limit holds. */
export class InstallationRetention extends Context.Reference<InstallationRetention>()(
  "usecases/accounts/InstallationRetention",
  { defaultValue: (): Retention => keepsAll }
) {}

export class RetentionLimits extends Effect.Service<RetentionLimits>()("usecases/accounts/Retention", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const store = yield* RetentionStore
    const rows = yield* ExpiredRows
    const passages = yield* UnusedPassages
    const installation = yield* InstallationRetention
    const isLimited = Object.values(installation).some((days) => days !== null)

    /** The tenant's own limits, and those of the installation. */
    const find = ({ tenantId }: TenantScope) =>
      Effect.map(store.find({ tenantId }), (retention) => ({ retention, installation }))

    const patch = ({ tenantId }: TenantScope, change: PatchRetention) =>
      Effect.map(store.patch({ tenantId }, change), (retention) => ({ retention, installation }))

    /**
     * The limits of a claimed tenant. Runs that only the installation limits are deleted after their week of events was
     * dropped, so that no event has to be deleted by itself.
     */
    const expiryOf = ({ seen, tenantId, ...own }: Claimed): Expiry => {
      const days = (kind: keyof Retention) => shorter(own[kind], installation[kind])
      const runs = days("runs")
      return {
        tenantId,
        seen,
        conversations: days("conversations"),
        anonymousPeople: days("anonymousPeople"),
        runs: runs !== null && runs === installation.runs ? runs + daysUntilDropped : runs,
        auditEntries: days("auditEntries"),
        emailLogs: days("emailLogs"),
        eventDeliveries: days("eventDeliveries"),
        ingestionJobs: days("ingestionJobs")
      }
    }

    /** Runs one batch. False when no tenant was due. */
    const runBatch = Effect.gen(function* () {
      const claimed = yield* store.claim
      if (Option.isNone(claimed)) return false
      yield* store.release(claimed.value, yield* rows.remove(expiryOf(claimed.value)))
      return true
    })

    /** Returns true when tenants may still wait. */
    const sweep = Effect.gen(function* () {
      for (let done = 0; done < maxBatches; done++) {
        if (yield* runBatch) continue
        // New tenants are looked for when no other is due.
        if (!isLimited || !(yield* store.include)) return false
      }
      return true
    }).pipe(Effect.withSpan("RetentionLimits.sweep"))

    /** Creates the partitions of the next weeks of traces, and drops those that no tenant keeps at the time `now`. */
    const sweepTracesAt = (now: DateTime.Utc) =>
      Effect.gen(function* () {
        yield* addWeeks
        const days = shorter(yield* store.longestRuns, installation.runs)
        yield* dropWeeks({
          expiredBefore: days === null ? null : DateTime.subtract(now, { days: days + daysUntilSettled }),
          emptyBefore: DateTime.subtract(now, { days: 2 * daysUntilSettled })
        })
      }).pipe(
        Effect.provideService(SqlClient.SqlClient, sql),
        Effect.orDie,
        Effect.withSpan("RetentionLimits.sweepTraces")
      )

    /** By the database's clock: a process whose own clock is ahead would drop weeks that are kept. */
    const sweepTraces = Effect.flatMap(store.now, sweepTracesAt)

    /** Removes passages that only runs of dropped weeks referred to. Returns true when there may be more. */
    const sweepPassages = passages.sweep

    /** Removes mails that belong to no tenant. Returns true when there are more. */
    const sweepMails = rows.removeMails(Math.min(installation.emailLogs ?? maxMailDays, maxMailDays))

    return { find, patch, sweep, sweepTraces, sweepTracesAt, sweepPassages, sweepMails } as const
  })
}) {}
