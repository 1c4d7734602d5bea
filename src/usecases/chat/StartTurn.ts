/** The start of a turn: from a request's message, or from the unanswered messages of a channel's conversation. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Cause from "effect/Cause"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Data from "effect/Data"
import type { AgentScope, ReadScope } from "../../domain/accounts/Access.ts"
import type { RunEvent } from "../../domain/chat/AgentRun.ts"
import type { StoredAttachment } from "../../domain/channels/Attachment.ts"
import type { ChatTurnRequest } from "../../domain/chat/ChatTurn.ts"
import type { ConversationChannel } from "../../domain/conversations/Conversation.ts"
import type { ClientChat } from "../../domain/chat/UiChat.ts"
import { Conflict, type ConversationNotActive, invalidField } from "../../domain/Errors.ts"
import { type ConversationId, newId, type RunId } from "../../domain/Ids.ts"
import * as CheapSpans from "../../concurrency/CheapSpans.ts"
import { isAnswerLost } from "../../concurrency/DatabaseOutage.ts"
import { type TurnClaim, TurnClaimStore } from "../../store/chat/TurnClaims.ts"
import { type Target, type TurnStart, Turns } from "../../store/chat/Turns.ts"
import { retryDeadlocks } from "../../store/Deadlock.ts"
import { UnansweredStore } from "../../store/channels/Unanswered.ts"
import { type TurnOptions, type Files, noTurnOptions } from "./TurnOptions.ts"
import * as Identity from "./Identity.ts"
import { ProcessLease } from "./ProcessLease.ts"
import { retryUntilWritten } from "./RetryUntilWritten.ts"
import * as Trace from "./Trace.ts"
import type { Reply, Turn } from "./Turn.ts"
import { TurnSettings } from "./TurnSettings.ts"

/** Stored messages to answer, and what their answer needs. */
export interface StoredMessages {
  readonly conversationId: ConversationId
  readonly channel: ConversationChannel
  readonly now: DateTime.Utc
  /** When all messages are older than this, none is answered. */
  readonly queueTimeout: Duration.Duration
  /** The files of the answered messages, oldest first. */
  readonly files: (stored: ReadonlyArray<StoredAttachment>) => Files
  /** Runs in the transaction of the reply. */
  readonly post: (reply: Reply, epoch: number) => Effect.Effect<void>
}

/** Maximum replies in one conversation within the window. More of them indicate a loop between two machines. */
const maxRepliesPerWindow = 100
const loopWindow = Duration.minutes(10)
/** Maximum characters of the messages that one reply answers: the same limit as for one API message. */
const maxAnsweredCharacters = 32_000

/** Time for the settlement after a turn's time-out. */
const settlingTime = Duration.seconds(30)

/** The opening of a turn with the trace of its run and the run's first event. */
export interface OpenedTurn {
  readonly opening: TurnStart
  readonly started: RunEvent
  readonly trace: Trace.Trace
}

/** An earlier request with the same Idempotency-Key began the turn `runId`. The caller follows that turn. */
export class TurnAlreadyStarted extends Data.TaggedError("TurnAlreadyStarted")<{ readonly runId: RunId }> {}

/** A turn that may begin. `opening` differs from the request's where a concurrent first message began the chat. */
interface Admitted {
  readonly opening: TurnStart
  readonly admission: Turn["admission"]
}

/** Reserves a turn and writes its first rows, or fails with the reason. */
export type Admit<E> = (
  scope: ReadScope,
  opening: TurnStart
) => Effect.Effect<Admitted, Effect.Effect.Error<ReturnType<typeof Identity.checkAdmission>> | E>

const notLastMessage = () =>
  invalidField(
    ["messages"],
    "Expected the last message of the chat",
    "Only the last message of a chat can be answered again."
  )

/** The conversation that a turn belongs to or begins. */
export const conversationOf = ({ target, persist, conversationId }: TurnStart): ConversationId | null => {
  if (target._tag === "Conversation") return target.id
  return persist ? conversationId : null
}

/** The end user named by a turn. */
const endUserOf = (target: Target) =>
  target._tag === "EndUser"
    ? { endUserId: target.id }
    : target._tag === "External"
      ? { externalEndUserId: target.id }
      : {}

/** How {@link ChatTurn} begins its turns. */
export const makeStartTurn = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const turns = yield* Turns
  const claims = yield* TurnClaimStore
  const unanswered = yield* UnansweredStore
  const instance = yield* ProcessLease
  const settings = yield* TurnSettings
  const retryUntilStored = retryUntilWritten(yield* Effect.scope)

  /** Resolves the conversation of `chat`, if it exists. */
  const findConversation = Effect.fn("StartTurn.findConversation")(function* (
    scope: ReadScope,
    request: ChatTurnRequest,
    chat: ClientChat
  ) {
    const found = yield* turns.chat(scope, chat.id)
    if (Option.isNone(found)) return { chatId: chat.id }
    const { asked, conversationId } = found.value
    yield* Identity.requireSamePerson(scope.visitor, request, found.value)
    const target: Target = { _tag: "Conversation", id: conversationId }
    if (!chat.again || asked === null || !request.persist) return { target }
    if (asked.content !== request.message) return yield* notLastMessage()
    return { target, userMessageId: asked.id, answers: [asked.id], regenerates: true }
  })

  const open = CheapSpans.fn("StartTurn.open")(function* (
    scope: ReadScope,
    channel: ConversationChannel,
    request: ChatTurnRequest,
    { chat, draft, files, retryOf, userMessageId, version }: TurnOptions
  ) {
    yield* Identity.requireVisitor(scope.visitor, request.externalEndUserId)
    const chatTarget = chat === undefined ? {} : yield* findConversation(scope, request, chat)
    const runId = yield* newId.run
    const trace = Trace.make(runId)
    const payload = draft === undefined ? undefined : { draft }
    const started = yield* trace.record("run.started", "running", "Run started", payload)
    const opening: TurnStart = {
      target: Identity.targetOf(request, scope.visitor),
      persist: request.persist,
      channel,
      instanceId: instance.id,
      runId,
      endUserId: yield* newId.endUser,
      conversationId: yield* newId.conversation,
      userMessageId: retryOf ?? userMessageId ?? (yield* newId.message),
      ...(retryOf === undefined ? {} : { answers: [retryOf], retries: true }),
      attachments: files.stored,
      message: request.message,
      startedAt: started.timestamp,
      startedLabel: started.label,
      ...(payload === undefined ? {} : { startedPayload: payload }),
      timeout: Duration.sum(settings.timeout, settlingTime),
      ...(version === undefined ? {} : { version }),
      ...chatTarget
    }
    return { opening, started, trace }
  })

  /** Begins the turn in the chat that a concurrent first message has created. */
  const beginInChat = (scope: ReadScope, { chatId, ...opening }: TurnStart) =>
    Effect.gen(function* () {
      const found = chatId === undefined ? Option.none() : yield* turns.chat(scope, chatId)
      if (Option.isNone(found)) return yield* Effect.dieMessage("A chat was taken and is not there")
      yield* Identity.requireSamePerson(scope.visitor, endUserOf(opening.target), found.value)
      const target: Target = { _tag: "Conversation", id: found.value.conversationId }
      const inChat: TurnStart = { ...opening, target }
      return { opening: inChat, started: yield* Effect.orDie(turns.begin(scope, inChat)) }
    })

  const begin = (scope: ReadScope, opening: TurnStart) => {
    const started = Effect.map(turns.begin(scope, opening), (admission) => ({ opening, started: admission }))
    if (opening.chatId === undefined) return Effect.orDie(started)
    // A refused first message may be part of an outer transaction, which goes on: so this is a savepoint.
    return sql
      .withTransaction(started)
      .pipe(Effect.catchTags({ ChatTaken: () => beginInChat(scope, opening), SqlError: Effect.die }))
  }

  const admitWithoutRetry: Admit<never> = (scope, given) =>
    Effect.flatMap(begin(scope, given), ({ opening, started }) =>
      Effect.map(Identity.checkAdmission(opening.target, started), (admission) => ({ opening, admission }))
    )

  const admit: Admit<never> = (scope, given) => retryDeadlocks(admitWithoutRetry(scope, given))

  /** `prepare` and turn are one transaction: a refused request changes nothing. */
  const admitAfter =
    (prepare: Effect.Effect<void, ConversationNotActive>): Admit<never> =>
    (scope, opening) =>
      Effect.zipRight(prepare, admitWithoutRetry(scope, opening)).pipe(
        sql.withTransaction,
        Effect.catchTag("SqlError", Effect.die),
        retryDeadlocks
      )

  /** Claim and turn are one transaction: a refused request does not use its key. */
  const admitOnce =
    (claim: TurnClaim): Admit<TurnAlreadyStarted | Conflict> =>
    (scope, opening) =>
      Effect.gen(function* () {
        const earlier = yield* claims.claim(scope, claim, opening.runId)
        if (Option.isNone(earlier)) {
          const admitted = yield* admitWithoutRetry(scope, opening)
          // The conversation was taken over since the statement began. A turn without a run cannot be followed.
          return admitted.admission.ticket === null ? yield* Identity.notActive() : admitted
        }
        const { requestHash, runId } = earlier.value
        if (requestHash === claim.requestHash) return yield* new TurnAlreadyStarted({ runId })
        return yield* new Conflict({
          message: "This Idempotency-Key was sent with another request. Use a new one for each turn."
        })
      }).pipe(sql.withTransaction, Effect.catchTag("SqlError", Effect.die), retryDeadlocks)

  /** Releases the key of a turn that was refused after it had begun. */
  const releaseClaim = (scope: AgentScope, claim: TurnClaim | null, { runId }: TurnStart) =>
    claim === null ? Effect.void : claims.release(scope, claim, runId)

  /**
   * Ends the run of a turn that is refused because the answer to its first statement was lost, if there is one: it
   * would keep its place in the conversation. Its key is released, so that the request can be sent again with it. Not
   * for every request that an outage refuses: those can be many.
   */
  const endUnconfirmed = (
    scope: AgentScope,
    opening: TurnStart,
    claim: TurnClaim | null,
    cause: Cause.Cause<unknown>
  ) => {
    const ending = Effect.zipRight(
      releaseClaim(scope, claim, opening),
      turns.settleEmpty(scope, opening.runId)
    )
    const mayHaveRun = opening.persist && Option.exists(Cause.dieOption(cause), isAnswerLost)
    return mayHaveRun ? retryUntilStored(ending) : Effect.void
  }

  /** Begins the turn that answers stored messages. Of several concurrent callers only one begins it. */
  const beginStored = CheapSpans.fn("StartTurn.beginStored")(function* (
    agent: AgentScope,
    stored: StoredMessages
  ) {
    const { conversationId: id, now } = stored
    const since = {
      characters: maxAnsweredCharacters,
      fresh: DateTime.subtractDuration(now, stored.queueTimeout),
      replies: DateTime.subtractDuration(now, loopWindow)
    }
    let begun: TurnStart | null = null
    const work = Effect.gen(function* () {
      const held = yield* unanswered.hold(agent, id, since)
      if (held === null || held.state !== "AI_ACTIVE") return "Inactive" as const
      const last = held.messages.at(-1)
      if (last === undefined || !held.messages.some(({ fresh }) => fresh)) return "Nothing" as const
      if (held.busy) return "Busy" as const
      if (held.replies >= maxRepliesPerWindow) return "Looping" as const
      const message = held.messages
        .flatMap(({ content }) => (content === "" ? [] : [content]))
        .join("\n")
        .slice(-maxAnsweredCharacters)
        .toWellFormed()
      const scope: ReadScope = { ...agent, sourceScope: held.sourceScope }
      const request: ChatTurnRequest = { message, conversationId: id, persist: true }
      const opened = yield* Effect.orDie(open(scope, stored.channel, request, noTurnOptions))
      const answers = held.messages.map((row) => row.id)
      const opening: TurnStart = { ...opened.opening, userMessageId: last.id, answers }
      const files = stored.files(held.messages.flatMap(({ attachments }) => attachments))
      begun = opening
      return {
        scope,
        request,
        files,
        opened: { ...opened, opening },
        admission: yield* Effect.orDie(turns.begin(scope, opening))
      }
    })
    const found = yield* sql.withTransaction(work).pipe(
      Effect.catchTag("SqlError", Effect.die),
      (whole) => retryDeadlocks(whole),
      Effect.tapErrorCause((cause) =>
        begun === null ? Effect.void : endUnconfirmed(agent, begun, null, cause)
      )
    )
    if (typeof found === "string") return found
    const { files, opened, request, scope } = found
    const admission = yield* Effect.either(Identity.checkAdmission(opened.opening.target, found.admission))
    if (Either.isRight(admission)) return { scope, request, files, opened, admission: admission.right }
    return admission.left._tag === "TURN_LIMIT_EXCEEDED" ? ("Exhausted" as const) : ("Inactive" as const)
  })

  return { open, beginStored, admit, admitAfter, admitOnce, releaseClaim, endUnconfirmed } as const
})
