/** The end of a turn: a reply, which is stored before it is reported as done, or a failure, which ends the run. */
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type { ChatTurnResult, TurnFailure } from "../../domain/chat/ChatTurn.ts"
import type { ConversationNotActive } from "../../domain/Errors.ts"
import { newId } from "../../domain/Ids.ts"
import * as CheapSpans from "../../concurrency/CheapSpans.ts"
import { retryDuringOutage } from "../../concurrency/DatabaseOutage.ts"
import { type Settled, type Settlement, Turns } from "../../store/chat/Turns.ts"
import type { Unstorable } from "../../store/Unstorable.ts"
import { RealtimeFeed } from "../conversations/RealtimeFeed.ts"
import type * as Answer from "./Answer.ts"
import { retryUntilWritten } from "./RetryUntilWritten.ts"
import * as MaskedTurn from "./masking/MaskedTurn.ts"
import * as ModelStep from "./ModelStep.ts"
import { emit, record, type Turn } from "./Turn.ts"
import * as TurnMetrics from "./TurnMetrics.ts"

interface Outcome extends Pick<Settlement, "reply" | "inputTokens" | "outputTokens" | "events" | "passages"> {
  readonly end: TurnMetrics.End
}

const noReply = { reply: null, inputTokens: 0, outputTokens: 0 } as const

/** How {@link ChatTurn} ends its turns. */
export const makeSettleTurn = Effect.gen(function* () {
  const turns = yield* Turns
  const feed = yield* RealtimeFeed
  const retryUntilStored = retryUntilWritten(yield* Effect.scope)
  TurnMetrics.register()

  const settle = CheapSpans.fn("SettleTurn.settle")(function* (turn: Turn, outcome: Outcome) {
    const { admission, opening, scope } = turn
    const tokens = { inputTokens: outcome.inputTokens, outputTokens: outcome.outputTokens }
    // A turn without a ticket has no stored run: the conversation was taken over while the turn began.
    if (!turn.request.persist || admission.ticket === null) {
      const unstored = { ...admission, runId: opening.runId }
      yield* turn.counted ? turns.count(scope, unstored, turn.bills) : turns.release(scope, unstored)
      turn.settled = true
      yield* TurnMetrics.count(turn, outcome.end, outcome)
      return { _tag: "Written", epoch: admission.epoch } satisfies Settled
    }
    const settlement: Settlement = {
      runId: opening.runId,
      counted: turn.counted,
      bills: turn.bills,
      budgeted: admission.budgeted,
      ...tokens,
      reply: outcome.reply,
      ...(outcome.reply === null || turn.handoff === null ? {} : { handoff: turn.handoff }),
      summary: turn.summary,
      takenOver: turn.takenOver,
      events: outcome.events,
      passages: outcome.passages ?? turn.shown
    }
    const { post } = turn
    const { reply } = outcome
    const posting =
      post === null || reply === null
        ? null
        : (epoch: number) => post({ ...reply, handedOff: turn.handoff !== null }, epoch)
    const settled = yield* turns.settle(scope, settlement, posting)
    turn.settled = settled._tag !== "Fenced"
    if (settled._tag === "Written") yield* TurnMetrics.count(turn, outcome.end, outcome)
    yield* feed.changed(turn.conversationId, opening.runId)
    return settled
  }, Effect.uninterruptible)

  const warn = (refusal: Unstorable) =>
    Effect.logWarning("The database refuses the content of a turn", Cause.fail(refusal))

  /** {@link settle}. Fails the turn if the database refuses its content. */
  const settleOrFail = (turn: Turn, outcome: Outcome) =>
    Effect.catchTag(settle(turn, outcome), "Unstorable", (refusal) =>
      Effect.zipRight(warn(refusal), ModelStep.turnFailed())
    )

  /** A human answers now, so the model's reply is not sent. */
  const takenOver = CheapSpans.fn("SettleTurn.takenOver")(function* (turn: Turn, answer: Answer.Answer) {
    turn.takenOver = true
    const { inputTokens, outputTokens } = answer
    yield* record(turn, "run.failed", "failed", "Somebody else took over", { code: "TAKEN_OVER" })
    const events = turn.trace.unstored()
    yield* settleOrFail(turn, { end: "taken_over", reply: null, inputTokens, outputTokens, events })
  }, Effect.uninterruptible)

  /** Stores the reply first and reports it afterwards. */
  const conclude = CheapSpans.fn("SettleTurn.conclude")(function* (turn: Turn, answer: Answer.Answer) {
    const { citations, inputTokens, outputTokens, reply } = answer
    // A channel sends no blank message, so the contact would wait for an answer.
    if (turn.post !== null && reply.trim() === "") {
      turn.providerProblem = "answer_broken"
      return yield* ModelStep.turnFailed()
    }
    const event = yield* turn.trace.draft("run.completed", "complete", answer.label)
    const id = yield* newId.message
    const settling = settleOrFail(turn, {
      end: "complete",
      reply: { id, content: reply, citations },
      inputTokens,
      outputTokens,
      // The last event is true only if this statement succeeds.
      events: [...turn.trace.unstored(), event]
    })
    // A run that is settled already does not change. A turn without one may be counted twice.
    const settled = yield* retryDuringOutage(settling)
    if (settled._tag === "Fenced") yield* takenOver(turn, answer)
    if (settled._tag !== "Written") return yield* ModelStep.turnFailed()
    yield* emit(turn, { _tag: "RunEvent", event })
    const result: ChatTurnResult = {
      reply,
      ...(turn.conversationId === null ? {} : { conversationId: turn.conversationId }),
      ...(turn.endUserId === null ? {} : { endUserId: turn.endUserId }),
      citations,
      media: []
    }
    turn.result = result
    yield* emit(turn, { _tag: "Done", result })
  })

  /** True when a takeover stopped the turn, possibly before there was any text. */
  const isTakenOver = CheapSpans.fn("SettleTurn.isTakenOver")(function* (turn: Turn) {
    const { admission, conversationId, scope } = turn
    if (conversationId === null || admission.ticket === null) return false
    if (!(yield* Deferred.isDone(turn.cancellation))) return false
    const { epoch, state } = yield* turns.place(scope, conversationId, admission.ticket)
    return state !== "AI_ACTIVE" || epoch !== admission.epoch
  })

  /**
   * Ends the run as failed and stores what the database accepts of its events. Content that it refuses is left out, so
   * that no content can block a conversation.
   */
  const settleFailed = (turn: Turn, end: TurnMetrics.End) => {
    const { admission, bills, counted, opening, scope } = turn
    const events = turn.trace.unstored()
    const settleEmpty = Effect.gen(function* () {
      yield* turns.settleEmpty(scope, opening.runId, { counted, bills, budgeted: admission.budgeted })
      turn.settled = true
      yield* TurnMetrics.count(turn, end, noReply)
      yield* feed.changed(turn.conversationId, opening.runId)
    })
    return settle(turn, { end, ...noReply, events }).pipe(
      Effect.tapError(warn),
      Effect.orElse(() => settle(turn, { end, ...noReply, events: events.slice(-1), passages: [] })),
      Effect.tapError(warn),
      Effect.orElse(() => settleEmpty)
    )
  }

  /** Ends the run of a turn that ended early, for any reason. */
  const abandon = (turn: Turn, why: TurnFailure | ConversationNotActive) =>
    Effect.gen(function* () {
      if (turn.settled) return
      const isRefused = why._tag === "CONVERSATION_NOT_ACTIVE"
      turn.takenOver =
        isRefused || (yield* Effect.catchAllCause(isTakenOver(turn), () => Effect.succeed(false)))
      turn.summary.stopped =
        why._tag === "TURN_FAILED" && !turn.takenOver && (yield* Deferred.isDone(turn.cancellation))
      const code = turn.takenOver ? "TAKEN_OVER" : why._tag
      const provider = turn.takenOver ? null : turn.providerProblem
      const failure = {
        code,
        ...(isRefused ? { refused: true } : {}),
        ...(provider === null ? {} : { provider }),
        ...MaskedTurn.tracePayload(turn)
      }
      yield* record(turn, "run.failed", "failed", "Run failed", failure)
      const failed = why._tag === "RUNTIME_TIMEOUT" ? "timed_out" : "failed"
      const end = turn.takenOver ? "taken_over" : failed
      yield* retryUntilStored(settleFailed(turn, end))
    }).pipe(
      Effect.catchAllCause((cause) => Effect.logError("A failed turn could not be settled", cause)),
      Effect.uninterruptible
    )

  return { abandon, conclude, isTakenOver } as const
})
