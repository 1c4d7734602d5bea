/** Requests a human: the customer wants one, or the agent cannot answer. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { ConversationScope } from "../../domain/conversations/Conversation.ts"
import type { ConversationId } from "../../domain/Ids.ts"
import { handoffNoticeFor } from "../../domain/chat/Notices.ts"
import * as TurnMetrics from "../chat/TurnMetrics.ts"
import { ConversationControl } from "./ConversationControl.ts"

export interface HandoffOptions {
  /** The reason, shown to the team. */
  readonly reason: string
  /** Who requests the human, for the metrics. */
  readonly by: "person" | "service"
  /** Language of the notice to the customer. By default it is detected from the customer's message. */
  readonly language?: string | undefined
  /** Whether the customer gets a notice; true by default. */
  readonly notifyCustomer?: boolean
  /** The reason stored with a channel's unanswered messages; `human` by default. */
  readonly unanswered?: string
}

export class Handoff extends Effect.Service<Handoff>()("usecases/conversations/Handoff", {
  effect: Effect.gen(function* () {
    const control = yield* ConversationControl

    /**
     * Sets the conversation to `HUMAN_REQUESTED` and notifies the customer. Returns false, without any change, when the
     * agent does not answer it: a human was already requested, it is closed, or it is outside the scope.
     */
    const request = Effect.fn("Handoff.request")(function* (
      scope: ConversationScope,
      id: ConversationId,
      { by, language, reason, notifyCustomer = true, unanswered = "human" }: HandoffOptions
    ) {
      const done = yield* control.change(
        scope,
        id,
        { from: ["AI_ACTIVE"], to: "HUMAN_REQUESTED", reason, unanswered },
        ({ epoch, lastQuestion }) =>
          notifyCustomer
            ? Effect.asVoid(
                control.addMessage(scope, id, epoch, {
                  content: handoffNoticeFor(lastQuestion, language),
                  author: "system",
                  userId: null
                })
              )
            : Effect.void
      )
      if (Option.isSome(done)) yield* TurnMetrics.handedOver(by)
      return Option.isSome(done)
    })

    return { request } as const
  })
}) {}
