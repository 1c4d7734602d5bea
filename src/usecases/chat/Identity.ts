/** Resolves the end user of a turn and checks whether the turn may begin. */
import * as Effect from "effect/Effect"
import type { ChatTurnRequest, ExternalEndUserId } from "../../domain/chat/ChatTurn.ts"
import {
  ConversationNotActive,
  ConversationNotFound,
  EndUserNotFound,
  TurnLimitExceeded,
  type ValidationError,
  invalidField
} from "../../domain/Errors.ts"
import type { EndUserId } from "../../domain/Ids.ts"
import * as CheapSpans from "../../concurrency/CheapSpans.ts"
import { budgetSpent } from "../billing/OtherModelCalls.ts"
import type { StartedTurn, Target } from "../../store/chat/Turns.ts"

/**
 * At most one identity field is set: the request schema guarantees it. Without any, a stored turn is of the `visitor`
 * that a token names: an anonymous person may be any visitor, so others could read the conversation.
 */
export const targetOf = (
  { conversationId, endUserId, externalEndUserId, persist }: ChatTurnRequest,
  visitor: ExternalEndUserId | undefined
): Target => {
  if (conversationId !== undefined) return { _tag: "Conversation", id: conversationId }
  if (endUserId !== undefined) return { _tag: "EndUser", id: endUserId }
  if (externalEndUserId !== undefined) return { _tag: "External", id: externalEndUserId }
  return persist && visitor !== undefined ? { _tag: "External", id: visitor } : { _tag: "Anonymous" }
}

/** An id proven by a visitor's token excludes any other. */
export const requireVisitor = (
  visitor: ExternalEndUserId | undefined,
  given: ExternalEndUserId | undefined
): Effect.Effect<void, ValidationError> =>
  visitor === undefined || given === undefined || given === visitor
    ? Effect.void
    : Effect.fail(
        invalidField(
          ["externalEndUserId"],
          "Expected the name that the token proves",
          "The visitor's token is somebody else's."
        )
      )

export const notActive = () =>
  new ConversationNotActive({
    message: "The conversation is not AI_ACTIVE, so the agent does not answer in it."
  })

const notFound = () =>
  new ConversationNotFound({ message: "The conversation does not exist for this agent." })

/**
 * A chat belongs to one person. Fails with CONVERSATION_NOT_FOUND for another person. One without an external id may be
 * the visitor that a token names.
 */
export const requireSamePerson = (
  visitor: ExternalEndUserId | undefined,
  asked: Pick<ChatTurnRequest, "endUserId" | "externalEndUserId">,
  chat: { readonly endUserId: EndUserId; readonly externalId: string | null }
) =>
  (visitor === undefined || (chat.externalId ?? visitor) === visitor) &&
  (asked.endUserId === undefined || asked.endUserId === chat.endUserId) &&
  (asked.externalEndUserId === undefined || asked.externalEndUserId === chat.externalId)
    ? Effect.void
    : Effect.fail(notFound())

/**
 * Fails when the target is missing (404), the conversation is not active (409), the quota is used up or a budget is
 * spent (429).
 */
export const checkAdmission = CheapSpans.fn("Identity.checkAdmission")(function* (
  target: Target,
  admission: StartedTurn
) {
  if (target._tag === "Conversation") {
    if (!admission.known) {
      return yield* notFound()
    }
    if (admission.state !== "AI_ACTIVE") return yield* notActive()
  }
  if (!admission.known) return yield* new EndUserNotFound({ message: "The end user does not exist." })
  if (admission.spentBudget !== null) return yield* budgetSpent(admission.spentBudget)
  if (!admission.reserved || admission.periodStart === null) {
    return yield* new TurnLimitExceeded({ message: "The chat turns of this period are used up." })
  }
  return { ...admission, periodStart: admission.periodStart }
})

/** The end user that the result shows; null for turns that name a conversation. */
export const visibleEndUser = (target: Target, { endUserId }: StartedTurn) =>
  target._tag === "Conversation" ? null : endUserId
