/**
 * Runs chat turns. A turn is a fiber that no request owns: it settles after its client disconnects. One statement begins
 * it and one settles it; the stored reply is the streamed one. The invariants are in docs/design/turns.md.
 */
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as FiberSet from "effect/FiberSet"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { type AgentKey, type AgentScope, grantorOfKey, type ReadScope } from "../../domain/accounts/Access.ts"
import {
  type ChatTurnRequest,
  type ChatTurnResult,
  type CompleteTurnResult,
  hasRuntimeData,
  type TurnFailure,
  type TurnPart
} from "../../domain/chat/ChatTurn.ts"
import type { ConversationChannel } from "../../domain/conversations/Conversation.ts"
import { type ConversationNotActive, RuntimeDataUnavailable } from "../../domain/Errors.ts"
import type { EndUserId, RunId } from "../../domain/Ids.ts"
import * as CheapSpans from "../../concurrency/CheapSpans.ts"
import { retryDuringOutage } from "../../concurrency/DatabaseOutage.ts"
import { withoutServices } from "../../concurrency/WithoutServices.ts"
import type { TurnClaim } from "../../store/chat/TurnClaims.ts"
import { Turns } from "../../store/chat/Turns.ts"
import { RealtimeFeed } from "../conversations/RealtimeFeed.ts"
import * as Answer from "./Answer.ts"
import {
  type Admit,
  conversationOf,
  makeStartTurn,
  type OpenedTurn,
  type StoredMessages
} from "./StartTurn.ts"
import { makeSettleTurn } from "./SettleTurn.ts"
import { type TurnOptions, noTurnOptions, withDraft } from "./TurnOptions.ts"
import * as Identity from "./Identity.ts"
import { ProcessLease } from "./ProcessLease.ts"
import { RunningTurns } from "./RunningTurns.ts"
import * as ModelStep from "./ModelStep.ts"
import { RealtimeAccess } from "./RealtimeAccess.ts"
import { emit, onDisconnect, newTurnState, type Turn } from "./Turn.ts"
import * as StructuredReply from "./StructuredReply.ts"
import * as TurnCancellation from "./TurnCancellation.ts"
import * as TurnParts from "./TurnParts.ts"
import { makeTurnServices } from "./TurnServices.ts"
import { TurnSettings } from "./TurnSettings.ts"

/** A turn that has been admitted and is under way. */
export interface RunningTurn {
  /** Null when the turn stores nothing (`persist: false`). */
  readonly runId: RunId | null
  readonly endUserId: EndUserId | null
  /** Can be read once. Ends after `Done`. The turn goes on when a reader stops. */
  readonly parts: Stream.Stream<TurnPart, TurnFailure>
}

type Caller = ReadScope & Pick<AgentKey, "keyId">
type CompleteRequest = ChatTurnRequest & { readonly includeRealtimeToken: boolean }

/** Succeeds when the turn is the next of its conversation. Fails when it ends before that. */
type Ready = Deferred.Deferred<void, TurnFailure | ConversationNotActive>

export class ChatTurn extends Effect.Service<ChatTurn>()("usecases/chat/ChatTurn", {
  scoped: Effect.gen(function* () {
    const turns = yield* Turns
    const startTurn = yield* makeStartTurn
    const instance = yield* ProcessLease
    const services = yield* makeTurnServices
    const settings = yield* TurnSettings
    const realtime = yield* RealtimeAccess
    const feed = yield* RealtimeFeed
    const runningTurns = yield* RunningTurns
    const fibers = yield* FiberSet.make()
    const { abandon, conclude, isTakenOver } = yield* makeSettleTurn
    // Finalizers run in reverse order: this one waits before the set interrupts its remaining fibers. Nothing can be
    // interrupted in a finalizer otherwise, so that the time-out would wait for the fibers.
    yield* Effect.addFinalizer(() =>
      Effect.interruptible(FiberSet.awaitEmpty(fibers)).pipe(Effect.timeout(settings.drain), Effect.ignore)
    )

    /** The state of an admitted turn. Emits its first event. */
    const makeTurn = CheapSpans.fn("ChatTurn.makeTurn")(function* (
      scope: ReadScope,
      request: ChatTurnRequest,
      { opening, started, trace }: OpenedTurn,
      admission: Turn["admission"],
      { endUserId, files, history }: TurnOptions,
      post: Turn["post"] = null
    ) {
      const turn: Turn = {
        scope,
        request,
        opening,
        admission:
          history === undefined || opening.target._tag === "Conversation"
            ? admission
            : { ...admission, history },
        conversationId: conversationOf(opening),
        endUserId: endUserId ?? Identity.visibleEndUser(opening.target, admission),
        files,
        trace,
        parts: yield* TurnParts.make,
        cancellation: yield* TurnCancellation.make,
        ended: yield* Deferred.make<void>(),
        ...newTurnState(admission.masking),
        post
      }
      yield* emit(turn, { _tag: "RunEvent", event: started })
      return turn
    })

    const begin = CheapSpans.fn("ChatTurn.begin")(function* <E>(
      scope: ReadScope,
      channel: ConversationChannel,
      request: ChatTurnRequest,
      options: TurnOptions,
      admit: Admit<E>,
      claim: TurnClaim | null
    ) {
      if (hasRuntimeData(request) && !settings.runtimeData) {
        return yield* new RuntimeDataUnavailable({ message: "Runtime-data forwarding is unavailable." })
      }
      if (request.responseSchema !== undefined && services.runtime.readsPassages) {
        return yield* StructuredReply.notConfigured()
      }
      const opened = yield* startTurn.open(scope, channel, request, options)
      const { admission, opening } = yield* admit(scope, opened.opening).pipe(
        Effect.tapErrorCause((cause) => startTurn.endUnconfirmed(scope, opened.opening, claim, cause))
      )
      return yield* makeTurn(
        scope,
        request,
        { ...opened, opening },
        withDraft(admission, options.draft),
        options
      )
    })

    const beginStored = CheapSpans.fn("ChatTurn.beginStored")(function* (
      agent: AgentScope,
      stored: StoredMessages
    ) {
      const found = yield* startTurn.beginStored(agent, stored)
      if (typeof found === "string") return found
      const { admission, files, opened, request, scope } = found
      return yield* makeTurn(scope, request, opened, admission, { files }, stored.post)
    })

    /** True when the turn must wait for earlier turns. Only turns of a conversation do. */
    const mustWait = ({ admission, opening, request }: Turn) =>
      opening.target._tag === "Conversation" &&
      request.persist &&
      // A first turn that answers stored messages begins only when no other turn is alive.
      (admission.ticket === null ||
        !(admission.clear || (opening.answers !== undefined && opening.regenerates !== true)))

    /** Waits until every earlier turn of the conversation has ended, and returns the history as they left it. */
    const waitForEarlierTurns = CheapSpans.fn("ChatTurn.waitForEarlierTurns")(function* (turn: Turn) {
      const { admission, conversationId, scope } = turn
      const { ticket } = admission
      if (conversationId === null) return admission.history
      if (ticket === null) return yield* Identity.notActive()
      // The end of a turn in another process is noticed by polling.
      for (let wait = 20; ; wait = Math.min(wait * 2, 250)) {
        const nextEnd = yield* runningTurns.nextEnd(conversationId)
        const place = yield* retryDuringOutage(turns.place(scope, conversationId, ticket, turn.opening))
        const mayAnswer = place.state === "AI_ACTIVE" && place.epoch === admission.epoch
        if (place.clear && !mayAnswer) return yield* Identity.notActive()
        if (place.clear) return place.history
        if (place.dead) yield* instance.sweep
        yield* Effect.timeoutOption(nextEnd, wait)
      }
    })

    /** The error of a failed turn; a defect is an internal error. */
    const failureOf = (cause: Cause.Cause<TurnFailure | ConversationNotActive>) =>
      Option.match(Cause.failureOption(cause), {
        onSome: Effect.succeed,
        onNone: () =>
          Effect.as(
            Cause.isInterruptedOnly(cause) ? Effect.void : Effect.logError("A turn broke", cause),
            ModelStep.turnFailed()
          )
      })

    /** Ends the stream of parts, and signals how the turn ended. */
    const close = (turn: Turn, ready: Ready, exit: Exit.Exit<void, TurnFailure | ConversationNotActive>) => {
      const ended = Exit.mapError(exit, (failure) =>
        failure._tag === "CONVERSATION_NOT_ACTIVE" ? ModelStep.turnFailed() : failure
      )
      turn.exit = ended
      return Deferred.done(ready, exit).pipe(
        Effect.zipRight(Effect.sync(() => turn.buffer.close(ended))),
        Effect.zipRight(turn.parts.end(ended)),
        Effect.zipRight(runningTurns.remove(turn.opening.runId, turn.conversationId)),
        Effect.zipRight(turn.files.release),
        Effect.zipRight(Deferred.succeed(turn.ended, undefined))
      )
    }

    /** A conversation that begins with this turn has no listeners yet, so nothing is sent for it. */
    const sendTyping = ({ opening: { target }, request }: Turn) =>
      target._tag === "Conversation" && request.persist ? feed.typing(target.id) : Effect.void

    const runSteps = Effect.fnUntraced(function* (turn: Turn, ready: Ready) {
      yield* Effect.fork(
        Effect.zipRight(Effect.sleep(settings.timeout), TurnCancellation.timeOut(turn.cancellation))
      )
      const history = mustWait(turn)
        ? yield* TurnCancellation.unlessCancelled(
            turn.cancellation,
            waitForEarlierTurns(turn),
            // A takeover stops every turn of the conversation. This one may not have noticed it yet.
            Effect.flatMap(isTakenOver(turn), (takenOver) =>
              Effect.fail(takenOver ? Identity.notActive() : ModelStep.turnFailed())
            )
          )
        : turn.admission.history
      yield* Deferred.succeed(ready, undefined)
      yield* sendTyping(turn)
      const answered = yield* Effect.catchAll(Answer.run(services, turn, history), (failure) =>
        turn.handoff === null ? Effect.fail(failure) : Answer.addHandoffNotice(turn)
      )
      yield* conclude(turn, answered)
    })

    /** Releases the Idempotency-Key of a turn that is refused while it waits, before its end: a kill leaves no key. */
    const releaseKey = (
      { opening, scope }: Turn,
      claim: TurnClaim | null,
      why: TurnFailure | ConversationNotActive
    ) =>
      why._tag === "CONVERSATION_NOT_ACTIVE"
        ? Effect.catchAllCause(startTurn.releaseClaim(scope, claim, opening), (cause) =>
            Effect.logWarning("An Idempotency-Key could not be released", cause)
          )
        : Effect.void

    /** Runs the turn, and ends it exactly once, whatever happens. */
    const runToEnd = (turn: Turn, ready: Ready, claim: TurnClaim | null) =>
      Effect.uninterruptibleMask((restore) =>
        Effect.matchCauseEffect(restore(runSteps(turn, ready)), {
          onSuccess: () => close(turn, ready, Exit.void),
          onFailure: (cause) =>
            Effect.flatMap(failureOf(cause), (failure) =>
              releaseKey(turn, claim, failure).pipe(
                Effect.zipRight(abandon(turn, failure)),
                Effect.zipRight(close(turn, ready, Exit.fail(failure)))
              )
            )
        })
      )

    /** Registers the turn, so that it can be followed and stopped, and runs it. */
    const launch = (turn: Turn, ready: Ready, claim: TurnClaim | null = null) => {
      const { cancellation, opening, buffer, request, scope, trace } = turn
      const ended = Deferred.await(turn.ended)
      const stop = TurnCancellation.request(cancellation)
      const run = { scope, runId: opening.runId, trace, buffer, stop, ready: Deferred.await(ready), ended }
      const register = runningTurns.add(run)
      return Effect.zipRight(
        Effect.when(register, () => request.persist),
        FiberSet.run(fibers, Effect.interruptible(runToEnd(turn, ready, claim)))
      )
    }

    /** Begins a turn and forks its fiber. Returns once the turn is the next of its conversation. */
    const runTurn = CheapSpans.fn("ChatTurn.start")(function* <E>(
      scope: ReadScope,
      request: ChatTurnRequest,
      channel: ConversationChannel,
      options: TurnOptions,
      admit: Admit<E>,
      claim: TurnClaim | null = null
    ) {
      const ready = yield* Deferred.make<void, TurnFailure | ConversationNotActive>()
      // Uninterruptible from the first row to the fork of the fiber that settles it: a disconnect is noticed later.
      return yield* Effect.uninterruptibleMask((restore) =>
        begin(scope, channel, request, options, admit, claim).pipe(
          Effect.tap((turn) => launch(turn, ready, claim)),
          // After a disconnect while the turn waits, nobody reads its parts: the turn must not wait for a reader.
          Effect.tap((turn) => Effect.onInterrupt(restore(Deferred.await(ready)), () => onDisconnect(turn)))
        )
      )
    }, withoutServices)

    /** Waits for the end of a turn whose parts are not read. */
    const awaitEnd = (turn: Turn) =>
      Effect.zipRight(
        Effect.zipRight(
          turn.parts.shutdown,
          Effect.onInterrupt(Deferred.await(turn.ended), () => onDisconnect(turn))
        ),
        Effect.suspend(() => turn.exit ?? ModelStep.turnFailed())
      )

    /** Returns when the turn runs. Fails when the request is refused; later failures are failures of `parts`. */
    const start = (
      scope: ReadScope,
      request: ChatTurnRequest,
      channel: ConversationChannel = "api",
      options: TurnOptions = noTurnOptions
    ) => {
      const { prepare } = options
      const admit = prepare === undefined ? startTurn.admit : startTurn.admitAfter(prepare)
      return Effect.map(runTurn(scope, request, channel, options, admit), toRunningTurn)
    }

    /** {@link start} for the API. Only the first request with its Idempotency-Key starts a turn. */
    const startOnce = (
      scope: ReadScope,
      request: ChatTurnRequest,
      claim: TurnClaim,
      options: TurnOptions = noTurnOptions
    ) => Effect.map(runTurn(scope, request, "api", options, startTurn.admitOnce(claim), claim), toRunningTurn)

    /** `result` as a complete reply, with a realtime token when a conversation exists. */
    const completeReply = CheapSpans.fn("ChatTurn.completeReply")(function* (
      key: Caller,
      request: CompleteRequest,
      runId: RunId | null,
      result: ChatTurnResult
    ) {
      const object = request.responseSchema === undefined ? {} : StructuredReply.valueOf(result.reply)
      const complete: CompleteTurnResult = { ...result, runId, ...object }
      if (result.conversationId === undefined || !request.includeRealtimeToken) return complete
      return { ...complete, ...(yield* realtime.issue(key, result.conversationId, grantorOfKey(key))) }
    })

    const awaitReply = CheapSpans.fn("ChatTurn.complete")(function* (
      key: Caller,
      request: CompleteRequest,
      turn: Turn
    ) {
      yield* awaitEnd(turn)
      const { result } = turn
      if (result === null) return yield* ModelStep.turnFailed()
      return yield* completeReply(key, request, runIdOf(turn), result)
    })

    /** The complete reply, with a realtime token when a conversation exists. */
    const complete = (key: Caller, request: CompleteRequest, options: TurnOptions = noTurnOptions) =>
      Effect.flatMap(runTurn(key, request, "api", options, startTurn.admit), (turn) =>
        awaitReply(key, request, turn)
      )

    /** {@link complete}. Only the first request with its Idempotency-Key starts a turn. */
    const completeOnce = (
      key: Caller,
      request: CompleteRequest,
      claim: TurnClaim,
      options: TurnOptions = noTurnOptions
    ) =>
      Effect.flatMap(runTurn(key, request, "api", options, startTurn.admitOnce(claim), claim), (turn) =>
        awaitReply(key, request, turn)
      )

    /**
     * Answers all unanswered messages of a channel's conversation with one reply, and returns once it is settled. The
     * turn also settles when the caller is interrupted.
     */
    const answer = CheapSpans.fn("ChatTurn.answer")(function* (agent: AgentScope, stored: StoredMessages) {
      const ready = yield* Deferred.make<void, TurnFailure | ConversationNotActive>()
      const turn = yield* beginStored(agent, stored).pipe(
        Effect.tap((found) => (typeof found === "string" ? Effect.void : launch(found, ready))),
        Effect.uninterruptible
      )
      if (typeof turn === "string") return { _tag: turn }
      const outcome = yield* Effect.either(awaitEnd(turn))
      if (Either.isRight(outcome)) return { _tag: "Answered" as const }
      return turn.takenOver
        ? { _tag: "Inactive" as const }
        : { _tag: "Failed" as const, failure: outcome.left, repeatable: !turn.acted }
    })

    return { start, startOnce, complete, completeOnce, completeReply, answer } as const
  })
}) {}

const runIdOf = ({ opening, request }: Turn): RunId | null => (request.persist ? opening.runId : null)

const toRunningTurn = (turn: Turn): RunningTurn => ({
  runId: runIdOf(turn),
  endUserId: turn.endUserId,
  parts: Stream.ensuring(turn.parts.stream, onDisconnect(turn))
})
