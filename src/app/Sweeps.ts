/** Periodic work of every process. Work that must be done once is locked in the database. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { BudgetStore } from "../store/billing/Budgets.ts"
import { TurnClaimStore } from "../store/chat/TurnClaims.ts"
import { IdempotencyKeyStore } from "../store/IdempotencyKeys.ts"
import * as TableStatistics from "../store/TableStatistics.ts"
import { Inbound } from "../usecases/channels/Inbound.ts"
import { InboundEvents } from "../store/channels/InboundEvents.ts"
import { GapSearch } from "../usecases/conversations/GapSearch.ts"
import { Findings } from "../usecases/knowledge/Findings.ts"
import { Ingest } from "../usecases/knowledge/Ingest.ts"
import { EmbeddingProfiles } from "../usecases/knowledge/EmbeddingProfiles.ts"
import { JobAlerts } from "../usecases/operations/JobAlerts.ts"
import { Refresh } from "../usecases/knowledge/Refresh.ts"
import { Reindex } from "../usecases/knowledge/Reindex.ts"
import { StorageCount } from "../usecases/billing/StorageCount.ts"
import { RetentionLimits } from "../usecases/accounts/Retention.ts"
import { WebhookDelivery } from "../usecases/events/WebhookDelivery.ts"
import { RepeatedRequests } from "../usecases/accounts/RepeatedRequests.ts"
import { WebhookListeners } from "../usecases/events/WebhookListeners.ts"
import { WidgetSessions } from "../usecases/chat/widget/Sessions.ts"

const pauseWithMoreToDo = Duration.seconds(2)
const idlePause = Duration.minutes(1)

/**
 * Repeats `round`, which returns whether there is more to do. Then the next one follows soon, else after `pause`. A
 * failure is logged, and counts as nothing to do.
 */
const repeatRounds = <E, R>(name: string, pause: Duration.Duration, round: Effect.Effect<boolean, E, R>) =>
  round.pipe(
    Effect.catchAllCause((cause) => Effect.as(Effect.logWarning(`${name} failed`, cause), false)),
    Effect.flatMap((hasMore) => Effect.sleep(hasMore ? pauseWithMoreToDo : pause)),
    Effect.repeat(Schedule.forever),
    Effect.forkScoped
  )

/** Moves agents to the configured embedding model, syncs sources by schedule, and removes expired data. */
export const start = Effect.gen(function* () {
  const profiles = yield* EmbeddingProfiles
  const refresh = yield* Refresh
  const sessions = yield* WidgetSessions
  const inbox = yield* InboundEvents
  const inbound = yield* Inbound
  yield* repeatRounds(
    "The analysis of grown tables",
    TableStatistics.interval,
    Effect.as(TableStatistics.analyzeGrown, false)
  )
  yield* profiles.setTarget
  yield* repeatRounds("The sweep of embedding profiles", idlePause, profiles.sweep)
  const reindex = yield* Reindex
  yield* repeatRounds("The re-indexing of stored documents", Duration.hours(1), reindex.sweep)
  const findings = yield* Findings
  yield* repeatRounds("The search for passages that contradict each other", idlePause, findings.sweep)
  const ingest = yield* Ingest
  yield* repeatRounds("The sweep of ingestion jobs without a worker", idlePause, ingest.sweep)
  yield* repeatRounds("The sweep of unanswered messages", idlePause, inbound.sweep)
  const alerts = yield* JobAlerts
  yield* repeatRounds("The alert of failed jobs", Duration.seconds(15), Effect.as(alerts.sweep, false))
  yield* repeatRounds("The removal of old vectors", Duration.hours(1), profiles.removeUnused)
  yield* repeatRounds("The cleanup of the inbox of channels", Duration.hours(1), inbox.prune)
  yield* repeatRounds(
    "The sweep of scheduled readings",
    Duration.minutes(3),
    Effect.as(refresh.sweep(), false)
  )
  const webhooks = yield* WebhookDelivery
  yield* repeatRounds("The removal of old deliveries of webhooks", Duration.hours(1), webhooks.sweep)
  const repeated = yield* RepeatedRequests
  yield* repeatRounds("The removal of stored answers older than a day", Duration.hours(1), repeated.sweep)
  const keys = yield* IdempotencyKeyStore
  yield* repeatRounds("The removal of idempotency keys older than a day", Duration.hours(1), keys.prune)
  const claims = yield* TurnClaimStore
  yield* repeatRounds("The removal of turns' keys older than a day", Duration.hours(1), claims.prune)
  const budgets = yield* BudgetStore
  yield* repeatRounds("The removal of past periods of budgets", Duration.hours(1), budgets.prune)
  const listeners = yield* WebhookListeners
  yield* repeatRounds("The removal of abandoned listeners", idlePause, Effect.as(listeners.sweep, false))
  const gaps = yield* GapSearch
  yield* repeatRounds("The search for questions without an answer", idlePause, gaps.sweep)
  const retention = yield* RetentionLimits
  yield* repeatRounds("The removal of data past its retention", idlePause, retention.sweep)
  yield* repeatRounds(
    "The upkeep of the weeks of traces",
    Duration.hours(1),
    Effect.as(retention.sweepTraces, false)
  )
  yield* repeatRounds(
    "The removal of passages that only dropped weeks had",
    idlePause,
    retention.sweepPassages
  )
  yield* repeatRounds("The removal of old mails to the operator", Duration.hours(1), retention.sweepMails)
  const storage = yield* StorageCount
  yield* repeatRounds("The count of what tenants store", Duration.minutes(10), storage.sweep)
  yield* repeatRounds("The removal of ended widget sessions", Duration.hours(1), sessions.prune)
})
