/**
 * The turns that this process runs: their emitted parts and a way to stop them. The events of long turns are stored
 * while they run; those of short turns only at settlement.
 */
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FiberId from "effect/FiberId"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import { monotonicMillis } from "../../domain/MonotonicClock.ts"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import type { RunEvent } from "../../domain/chat/AgentRun.ts"
import type { TurnFailure } from "../../domain/chat/ChatTurn.ts"
import type { ConversationNotActive } from "../../domain/Errors.ts"
import type { ConversationId, RunId } from "../../domain/Ids.ts"
import { AgentRunStore, type RunEvents } from "../../store/chat/AgentRuns.ts"
import { ProcessLease, warnOnFailure } from "./ProcessLease.ts"
import type { PartBuffer } from "./PartBuffer.ts"
import type * as Trace from "./Trace.ts"

/**
 * A turn that runs longer than this is long. Also the interval at which its events are stored and stop requests are
 * read.
 */
const pollInterval = Duration.millis(500)

const withoutPayload = ({ payload: _, ...event }: RunEvent): RunEvent => event

export interface LiveRun {
  readonly scope: AgentScope
  readonly runId: RunId
  readonly trace: Trace.Trace
  readonly buffer: PartBuffer
  /** Stops the model call. Has no effect before it begins or after it has ended. */
  readonly stop: Effect.Effect<unknown>
  /** Returns once the turn is the next of its conversation. Fails if it ends before that. */
  readonly ready: Effect.Effect<void, TurnFailure | ConversationNotActive>
  /** Returns once the turn is settled. */
  readonly ended: Effect.Effect<void>
}

export class RunningTurns extends Effect.Service<RunningTurns>()("usecases/chat/RunningTurns", {
  scoped: Effect.gen(function* () {
    const store = yield* AgentRunStore
    const instance = yield* ProcessLease
    const runs = new Map<RunId, LiveRun & { readonly since: number }>()
    /**
     * By conversation, the next end of one of its turns, for the turns that wait. A turn that stops waiting ends, which
     * removes the entry.
     */
    const nextEnds = new Map<ConversationId, Deferred.Deferred<void>>()

    const add = (run: LiveRun) =>
      Effect.map(monotonicMillis, (since) => void runs.set(run.runId, { ...run, since }))

    /** Call when a turn has ended, even if it was not added. */
    const remove = (runId: RunId, conversationId: ConversationId | null) =>
      Effect.suspend(() => {
        runs.delete(runId)
        const nextEnded = conversationId === null ? undefined : nextEnds.get(conversationId)
        if (conversationId === null || nextEnded === undefined) return Effect.void
        nextEnds.delete(conversationId)
        return Effect.asVoid(Deferred.succeed(nextEnded, undefined))
      })

    /** The next end of one of the conversation's turns in this process. Only turns of the conversation may ask. */
    const nextEnd = (conversationId: ConversationId): Effect.Effect<Effect.Effect<void>> =>
      Effect.sync(() => {
        const nextEnded = nextEnds.get(conversationId) ?? Deferred.unsafeMake<void>(FiberId.none)
        nextEnds.set(conversationId, nextEnded)
        return Deferred.await(nextEnded)
      })

    /** None when the run belongs to another agent or another process. */
    const find = (scope: AgentScope, runId: RunId): Effect.Effect<Option.Option<LiveRun>> =>
      Effect.sync(() =>
        Option.filter(
          Option.fromNullable(runs.get(runId)),
          (run) => run.scope.tenantId === scope.tenantId && run.scope.agentId === scope.agentId
        )
      )

    /** Stores each event on its own. An event that the database refuses is stored without its payload. */
    const storeSeparately = (runs: ReadonlyArray<RunEvents>) =>
      Effect.forEach(
        runs.flatMap(({ events, ...run }) => events.map((event) => ({ event, run }))),
        ({ event, run }) =>
          Effect.catchTag(store.flush([{ ...run, events: [event] }]), "Unstorable", (refusal) =>
            Effect.zipRight(
              Effect.logWarning("The database refuses the content of an event", Cause.fail(refusal)),
              store.flush([{ ...run, events: [withoutPayload(event)] }])
            )
          ),
        { discard: true }
      )

    const storeEvents = (long: ReadonlyArray<LiveRun>) =>
      Effect.gen(function* () {
        const pending = long
          .map(({ runId, scope, trace }) => ({ scope, runId, trace, events: trace.unstored() }))
          .filter(({ events }) => events.length > 0)
        if (pending.length === 0) return
        yield* Effect.catchTag(store.flush(pending), "Unstorable", () => storeSeparately(pending))
        for (const run of pending) run.trace.stored(run.events)
      })

    const stopRequested = Effect.gen(function* () {
      for (const runId of yield* store.toStop(instance.id)) yield* runs.get(runId)?.stop ?? Effect.void
    })

    const poll = Effect.gen(function* () {
      const now = yield* monotonicMillis
      const long = [...runs.values()].filter(({ since }) => now - since >= Duration.toMillis(pollInterval))
      if (long.length === 0) return
      // Each may fail independently. Both are repeated at the next tick.
      yield* warnOnFailure("Events of running turns could not be stored", storeEvents(long))
      yield* warnOnFailure("Requests to stop turns could not be read", stopRequested)
    })
    yield* poll.pipe(Effect.repeat(Schedule.spaced(pollInterval)), Effect.forkScoped)

    return { add, remove, find, nextEnd } as const
  })
}) {}
