/**
 * Stored and running runs: reads a trace with an audit entry, follows a run after its client lost the stream, stops a
 * run.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Hash from "effect/Hash"
import * as Option from "effect/Option"
import * as RcMap from "effect/RcMap"
import * as Stream from "effect/Stream"
import { AuditLog } from "../../capabilities/AuditLog.ts"
import { retryDuringOutage } from "../../concurrency/DatabaseOutage.ts"
import type { AgentKey, ReadScope } from "../../domain/accounts/Access.ts"
import { processStopped, type RunEvent, type RunStatus } from "../../domain/chat/AgentRun.ts"
import type { ChatTurnResult, TurnPart } from "../../domain/chat/ChatTurn.ts"
import type { ChatId } from "../../domain/chat/UiChat.ts"
import { NotFound, ServiceUnavailable } from "../../domain/Errors.ts"
import type { RunId } from "../../domain/Ids.ts"
import { canonical } from "../../domain/Json.ts"
import { AgentRunStore, type Outcome } from "../../store/chat/AgentRuns.ts"
import type { RunningTurn } from "./ChatTurn.ts"
import { notActive } from "./Identity.ts"
import { CitationStream } from "./grounding/Citations.ts"
import { RunningTurns } from "./RunningTurns.ts"
import { runtimeTimeout, turnFailed, turnInterrupted } from "./ModelStep.ts"
import { streamWithRest } from "./PartBuffer.ts"

/** Longest time that a stop request waits for the run to end. The run's status then says whether it has ended. */
const stopTimeout = Duration.seconds(3)
/** Interval at which a run of another process is read. */
const pollInterval = Duration.millis(250)

const missingRun = () => new NotFound({ message: "The run does not exist for this agent." })

/** The last such event comes right after the reply's text. Earlier ones come before the text. */
const comesAfterText = ({ type }: RunEvent) => type === "model.completed"

const toPart = (event: RunEvent): TurnPart => ({ _tag: "RunEvent", event })

/** The parts of a complete run, in the order in which the turn emitted them. */
const partsOf = ({
  citations,
  conversationId,
  endUserId,
  events,
  reply
}: Outcome): ReadonlyArray<TurnPart> => {
  const result: ChatTurnResult = {
    reply: reply ?? "",
    ...(conversationId === null ? {} : { conversationId }),
    ...(endUserId === null ? {} : { endUserId }),
    citations: citations ?? [],
    media: []
  }
  const citationStream = new CitationStream(result.citations, "kept")
  const last = events.findLastIndex(comesAfterText)
  const before = last === -1 ? events : events.slice(0, last)
  const after = last === -1 ? [] : events.slice(last)
  return [
    ...before.map(toPart),
    { _tag: "StepStart" },
    ...(result.reply === "" ? [] : [...citationStream.addText(result.reply), ...citationStream.end()]),
    ...after.filter(comesAfterText).map(toPart),
    ...citationStream.rest(result.citations),
    { _tag: "StepEnd" },
    ...after.filter((event) => !comesAfterText(event)).map(toPart),
    { _tag: "Done", result }
  ]
}

/** True for the last event of a run whose request was refused while it waited. */
const isRefusal = ({ payload, type }: RunEvent) => type === "run.failed" && payload?.["refused"] === true

/** The stream of a settled run, rebuilt from what is stored. */
const storedStream = (outcome: Outcome): RunningTurn["parts"] => {
  if (outcome.status === "complete") return Stream.fromIterable(partsOf(outcome))
  const code = outcome.events.findLast(({ type }) => type === "run.failed")?.payload?.["code"]
  const failure =
    code === "RUNTIME_TIMEOUT" ? runtimeTimeout() : code === processStopped ? turnInterrupted() : turnFailed()
  return Stream.concat(Stream.fromIterable(outcome.events.map(toPart)), Stream.fail(failure))
}

/** Polls while `isPending` holds for what is read, and returns what is read after that. Outlives a short outage. */
const pollWhile = <A, E>(look: Effect.Effect<A, E>, isPending: (found: A) => boolean): Effect.Effect<A, E> =>
  Effect.flatMap(retryDuringOutage(look), (found) =>
    isPending(found)
      ? Effect.zipRight(Effect.sleep(pollInterval), pollWhile(look, isPending))
      : Effect.succeed(found)
  )

/** A run and the scope in which it is read. Two are equal if they read the same. */
class ReadRun implements Equal.Equal {
  readonly scope: ReadScope
  readonly id: RunId
  readonly #text: string

  constructor(scope: ReadScope, id: RunId) {
    this.scope = scope
    this.id = id
    const { agentId, sourceScope, tenantId, visitor = null } = scope
    this.#text = canonical([tenantId, agentId, sourceScope, visitor, id])
  }

  [Equal.symbol](that: unknown): boolean {
    return that instanceof ReadRun && that.#text === this.#text
  }

  [Hash.symbol](): number {
    return Hash.string(this.#text)
  }
}

export class AgentRuns extends Effect.Service<AgentRuns>()("usecases/chat/AgentRuns", {
  scoped: Effect.gen(function* () {
    const store = yield* AgentRunStore
    const runningTurns = yield* RunningTurns
    const audit = yield* AuditLog

    /** Returns one page of the trace. The audit entry is written first; nothing is returned when that fails. */
    const read = Effect.fn("AgentRuns.read")(function* (
      key: AgentKey,
      id: RunId,
      page: { readonly limit: number; readonly after: number },
      requestId: string
    ) {
      const found = yield* store.trace(key, id, page)
      if (Option.isNone(found)) return yield* missingRun()
      const actor = { type: "key" as const, id: key.keyId }
      const entry = { tenantId: key.tenantId, actor, action: "agent_run.read", target: id, requestId }
      yield* audit.record(entry).pipe(
        Effect.tapErrorCause((cause) =>
          Effect.logError("A trace was not shown: the access could not be audited", cause)
        ),
        Effect.mapError(
          () =>
            new ServiceUnavailable({
              message: "The read access could not be recorded, so nothing is shown. Try again."
            })
        )
      )
      return found.value
    })

    const statusOf = (scope: ReadScope, id: RunId) =>
      Effect.flatMap(store.status(scope, id), Effect.mapError(missingRun))

    const outcomeOf = (scope: ReadScope, id: RunId) =>
      Effect.flatMap(store.outcome(scope, id), Effect.mapError(missingRun))

    /** The outcomes of runs of other processes, once they are settled. All who wait for a run share its polling. */
    const settledOutcomes = yield* RcMap.make({
      lookup: ({ id, scope }: ReadRun) =>
        Effect.zipRight(
          pollWhile(statusOf(scope, id), (status) => status === "running"),
          retryDuringOutage(outcomeOf(scope, id))
        )
    })

    const settledOutcome = (scope: ReadScope, id: RunId) =>
      Effect.scoped(RcMap.get(settledOutcomes, new ReadRun(scope, id)))

    /** Waits at most {@link stopTimeout} until the run has ended, in this process or another one. */
    const waitForEnd = (scope: ReadScope, id: RunId) =>
      Effect.flatMap(
        runningTurns.find(scope, id),
        Option.match({
          onSome: (run) => Effect.zipRight(run.stop, run.ended),
          onNone: () => settledOutcome(scope, id)
        })
      ).pipe(Effect.timeoutOption(stopTimeout))

    /**
     * Stops a running turn. The text so far becomes the reply; a turn without any text fails. A settled run stays as it
     * is. Returns the status, which is `running` only when the run's process takes longer than {@link stopTimeout}.
     */
    const stop = Effect.fn("AgentRuns.stop")(function* (scope: ReadScope, id: RunId) {
      const before: RunStatus = yield* statusOf(scope, id)
      if (before !== "running") return { id, status: before }
      yield* store.requestStop(scope, id)
      yield* waitForEnd(scope, id)
      return { id, status: yield* statusOf(scope, id) }
    })

    /** The whole stream, once the run is settled. For a run of another process. */
    const streamOnceSettled = (scope: ReadScope, id: RunId): RunningTurn["parts"] =>
      settledOutcome(scope, id).pipe(
        // Deleting an agent deletes its runs.
        Effect.mapError(turnFailed),
        Effect.map(storedStream),
        Stream.unwrap
      )

    /** The stream of a run from its start to its end. The run may be under way or settled. */
    const follow = Effect.fn("AgentRuns.follow")(function* (scope: ReadScope, id: RunId) {
      const running = yield* runningTurns.find(scope, id)
      const outcome = yield* outcomeOf(scope, id)
      const parts = Option.isSome(running)
        ? streamWithRest(running.value.buffer, streamOnceSettled(scope, id))
        : outcome.status === "running"
          ? streamOnceSettled(scope, id)
          : storedStream(outcome)
      const turn: RunningTurn = { runId: id, endUserId: outcome.endUserId, parts }
      return turn
    })

    /** The stream of the chat's running turn; none when no turn runs or the chat does not exist. */
    const followChat = Effect.fn("AgentRuns.followChat")(function* (scope: ReadScope, id: ChatId) {
      const running = yield* store.runningOf(scope, id)
      if (Option.isNone(running)) return Option.none<RunningTurn>()
      // Deleting an agent deletes its runs.
      return yield* Effect.option(follow(scope, running.value))
    })

    /**
     * Waits until the run is the next of its conversation, or has ended. Fails if its request was refused. Of a run in
     * another process, a refusal is noticed while turns before it run, and once it is settled.
     */
    const awaitReady = (scope: ReadScope, id: RunId) =>
      Effect.flatMap(
        runningTurns.find(scope, id),
        Option.match({
          onSome: ({ ready }) =>
            Effect.catchTags(ready, { RUNTIME_TIMEOUT: () => Effect.void, TURN_FAILED: () => Effect.void }),
          onNone: () =>
            Effect.flatMap(
              pollWhile(outcomeOf(scope, id), ({ waits }) => waits),
              ({ events }) => (events.some(isRefusal) ? Effect.fail(notActive()) : Effect.void)
            )
        })
      )

    return { read, stop, follow, followChat, awaitReady } as const
  })
}) {}
