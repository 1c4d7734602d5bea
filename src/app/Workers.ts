/** Background workers: ingestion, embedding, channels, webhooks, and sweeps. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as ExecutionStrategy from "effect/ExecutionStrategy"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import { JobQueue } from "../capabilities/JobQueue.ts"
import type { QueueName } from "../domain/knowledge/Job.ts"
import { ExperimentWork } from "../usecases/agents/ExperimentWork.ts"
import { Artifacts } from "../usecases/knowledge/Artifacts.ts"
import { Embed } from "../usecases/knowledge/Embed.ts"
import { WebhookIngress } from "../usecases/channels/WebhookIngress.ts"
import { Inbound } from "../usecases/channels/Inbound.ts"
import { Outbound } from "../usecases/channels/Outbound.ts"
import { Ingest } from "../usecases/knowledge/Ingest.ts"
import { VectorStorage } from "../usecases/knowledge/VectorStorage.ts"
import { LegacyKeys } from "../usecases/conversations/LegacyKeys.ts"
import { WebhookDelivery } from "../usecases/events/WebhookDelivery.ts"
import * as Sweeps from "./Sweeps.ts"

/** Maximum concurrent jobs of each queue in one process. The policy's `ownerShare` limits those of one owner. */
const concurrentJobs = {
  /** Syncs of sources. */
  ingestion: 4,
  /** Sources whose vectors are made. */
  embedding: 2,
  /** Removals of originals. */
  "artifact-cleanup": 4,
  /** Events of messaging channels. */
  "channel-inbound": 8,
  /** Messages to contacts. Most of the time is spent waiting for the provider. */
  "channel-outbound": 12,
  /** Events to webhooks. All of the time is spent waiting for the receiver. */
  "webhook-outbound": 32,
  /** Experiments, each of which runs two questions at a time. */
  experiments: 2
} as const satisfies Record<QueueName, number>

const startCleanup = Effect.gen(function* () {
  const artifacts = yield* Artifacts
  yield* artifacts.sweep.pipe(
    Effect.catchAllCause((cause) => Effect.logWarning("Originals could not be swept", cause)),
    Effect.repeat(Schedule.spaced(Duration.minutes(10))),
    Effect.delay(Duration.minutes(1)),
    Effect.forkScoped
  )
})

/**
 * Runs until its scope closes. Then all workers stop taking jobs at the same time and wait for the running ones, each
 * as long as its queue's policy allows.
 */
export const layer = Layer.scopedDiscard(
  Effect.gen(function* () {
    const workersScope = yield* Scope.fork(yield* Effect.scope, ExecutionStrategy.parallel)
    /** Runs `worker` in a scope of its own. These scopes close in parallel, the finalizers of each in sequence. */
    const inOwnScope = <A, E, R>(worker: Effect.Effect<A, E, R>) =>
      Effect.flatMap(Scope.fork(workersScope, ExecutionStrategy.sequential), (own) =>
        Scope.extend(worker, own)
      )
    const queue = yield* JobQueue
    const ingest = yield* Ingest
    const embed = yield* Embed
    const artifacts = yield* Artifacts
    const ingress = yield* WebhookIngress
    const inbound = yield* Inbound
    const outbound = yield* Outbound
    const { work } = yield* LegacyKeys
    const vectors = yield* VectorStorage
    yield* inOwnScope(
      queue.work(
        "channel-inbound",
        concurrentJobs["channel-inbound"],
        (job) => Effect.zipRight(ingress.quietPeriod, inbound.process(job)),
        inbound.failAbandoned
      )
    )
    yield* inOwnScope(
      queue.work(
        "channel-outbound",
        concurrentJobs["channel-outbound"],
        outbound.process,
        outbound.failAbandoned
      )
    )
    yield* inOwnScope(queue.work("ingestion", concurrentJobs.ingestion, ingest.process, ingest.failAbandoned))
    yield* inOwnScope(queue.work("embedding", concurrentJobs.embedding, embed.process, embed.failAbandoned))
    yield* inOwnScope(queue.work("artifact-cleanup", concurrentJobs["artifact-cleanup"], artifacts.process))
    const webhooks = yield* WebhookDelivery
    yield* inOwnScope(queue.work("webhook-outbound", concurrentJobs["webhook-outbound"], webhooks.process))
    const experiments = yield* ExperimentWork
    yield* inOwnScope(
      queue.work("experiments", concurrentJobs.experiments, experiments.process, experiments.failAbandoned)
    )
    yield* inOwnScope(Sweeps.start)
    yield* inOwnScope(Effect.forkScoped(work))
    yield* inOwnScope(Effect.forkScoped(vectors.work))
    yield* inOwnScope(startCleanup)
  })
)
