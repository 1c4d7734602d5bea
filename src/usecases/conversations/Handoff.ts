/** A human is asked for: by the customer's wish, or because the agent cannot answer. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { ConversationScope } from "../../domain/conversations/Conversation.ts"
import type { ConversationId } from "../../domain/Ids.ts"
import { sentenceFor } from "../chat/HandoffNotice.ts"
import { ConversationControl } from "./ConversationControl.ts"

export interface HandoffOptions {
  /** Why, for the team to read. */
  readonly reason: string
  /** In which the customer is told so; by default what they write tells it. */
  readonly language?: string | undefined
  /** False where the customer is not answered at all. */
  readonly told?: boolean
  /** The treatment of a channel's unanswered messages: `human` by default. */
  readonly unanswered?: string
}

export class Handoff extends Effect.Service<Handoff>()("usecases/conversations/Handoff", {
  effect: Effect.gen(function* () {
    const ownership = yield* ConversationControl

    /**
     * The conversation is `HUMAN_REQUESTED` from now on, and the customer is told so. False, and nothing happens, when its
     * agent does not answer it: a human was asked for already, or it is over, or it is not of this scope.
     */
    const request = Effect.fn("Handoff.request")(function* (
      scope: ConversationScope,
      id: ConversationId,
      { language, reason, told = true, unanswered = "human" }: HandoffOptions
    ) {
      const done = yield* ownership.change(
        scope,
        id,
        { from: ["AI_ACTIVE"], to: "HUMAN_REQUESTED", reason, unanswered },
        ({ epoch, lastQuestion }) =>
          told
            ? Effect.asVoid(
                ownership.say(scope, id, epoch, {
                  content: sentenceFor(lastQuestion, language),
                  author: "system",
                  userId: null
                })
              )
            : Effect.void
      )
      return Option.isSome(done)
    })

    return { request } as const
  })
}) {}
