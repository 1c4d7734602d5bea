/** Turns that API callers start. A request repeated with the same Idempotency-Key gets the turn of the first one. */
import { createHash } from "node:crypto"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { AgentKey } from "../../domain/accounts/Access.ts"
import type { ChatTurnRequest, ChatTurnResult, TurnPart } from "../../domain/chat/ChatTurn.ts"
import type { ClientChat } from "../../domain/chat/UiChat.ts"
import { Conflict, invalidField } from "../../domain/Errors.ts"
import type { RunId } from "../../domain/Ids.ts"
import { canonical } from "../../domain/Json.ts"
import type { TurnClaim } from "../../store/chat/TurnClaims.ts"
import { AgentRuns } from "./AgentRuns.ts"
import { ChatTurn } from "./ChatTurn.ts"
import { turnFailed } from "./ModelStep.ts"
import { noTurnOptions } from "./TurnOptions.ts"

/** A turn request, with the chat that it names, if any. */
type RequestWithChat<A extends ChatTurnRequest = ChatTurnRequest> = A & { readonly chat?: ClientChat }

/** Separates the turn's own fields from those passed beside it. */
const split = <A extends ChatTurnRequest>({ chat, ...request }: RequestWithChat<A>) => ({
  request,
  options: chat === undefined ? noTurnOptions : { ...noTurnOptions, chat }
})

/**
 * Hash of the request for the Idempotency-Key. Credentials are left out: they are not stored, and a repeat may bring
 * new ones.
 */
const hashOf = ({ chat, ...request }: RequestWithChat): string => {
  const { context, conversationId, endUserId, externalEndUserId, filter, message, toolContext } = request
  const { responseSchema } = request
  const asked = [
    message,
    conversationId,
    endUserId,
    externalEndUserId,
    context,
    toolContext,
    filter,
    ...(responseSchema === undefined && chat === undefined ? [] : [responseSchema]),
    ...(chat === undefined ? [] : [chat.id, chat.again])
  ]
  return createHash("sha256")
    .update(canonical(asked.map((part) => (part === undefined ? [] : [part]))))
    .digest("base64url")
}

const claimOf = ({ keyId }: AgentKey, asked: RequestWithChat, idempotencyKey: string) =>
  asked.persist
    ? Effect.succeed<TurnClaim>({ keyId, idempotencyKey, requestHash: hashOf(asked) })
    : Effect.fail(
        invalidField(
          ["persist"],
          "Expected true with an Idempotency-Key",
          "An Idempotency-Key needs persist: true. Other turns are not stored, so a repeat could not return them."
        )
      )

const runDeleted = () => new Conflict({ message: "The turn of this Idempotency-Key has been deleted." })

export class ChatRequests extends Effect.Service<ChatRequests>()("usecases/chat/ChatRequests", {
  effect: Effect.gen(function* () {
    const turns = yield* ChatTurn
    const runs = yield* AgentRuns

    const follow = (key: AgentKey, runId: RunId) =>
      Effect.catchTag(runs.follow(key, runId), "NOT_FOUND", runDeleted)

    /** The result of an earlier turn. Waits until the turn has ended. */
    const resultOf = Effect.fn("ChatRequests.resultOf")(function* (key: AgentKey, runId: RunId) {
      const { parts } = yield* follow(key, runId)
      const result = yield* parts.pipe(
        Stream.runFold<ChatTurnResult | null, TurnPart>(null, (found, part) =>
          part._tag === "Done" ? part.result : found
        )
      )
      return result ?? (yield* turnFailed())
    })

    /** Fails like the first request if that was refused while its turn waited. */
    const awaitReady = (key: AgentKey, runId: RunId) =>
      Effect.catchTag(runs.awaitReady(key, runId), "NOT_FOUND", runDeleted)

    /** Returns a running turn: a new one, or the one that an earlier request with `idempotencyKey` started. */
    const start = Effect.fn("ChatRequests.start")(function* (
      key: AgentKey,
      asked: RequestWithChat,
      idempotencyKey?: string
    ) {
      const { options, request } = split(asked)
      if (idempotencyKey === undefined) return yield* turns.start(key, request, "api", options)
      const claim = yield* claimOf(key, asked, idempotencyKey)
      return yield* Effect.catchTag(
        turns.startOnce(key, request, claim, options),
        "TurnAlreadyStarted",
        ({ runId }) => Effect.zipRight(awaitReady(key, runId), follow(key, runId))
      )
    })

    /** Waits for the complete reply of such a turn. */
    const complete = Effect.fn("ChatRequests.complete")(function* (
      key: AgentKey,
      asked: RequestWithChat<ChatTurnRequest & { readonly includeRealtimeToken: boolean }>,
      idempotencyKey?: string
    ) {
      const { options, request } = split(asked)
      if (idempotencyKey === undefined) return yield* turns.complete(key, request, options)
      const claim = yield* claimOf(key, asked, idempotencyKey)
      return yield* Effect.catchTag(
        turns.completeOnce(key, request, claim, options),
        "TurnAlreadyStarted",
        ({ runId }) =>
          resultOf(key, runId).pipe(
            Effect.catchTag("TURN_FAILED", (failure) => Effect.zipRight(awaitReady(key, runId), failure)),
            Effect.flatMap((result) => turns.completeReply(key, request, runId, result))
          )
      )
    })

    return { start, complete } as const
  })
}) {}
