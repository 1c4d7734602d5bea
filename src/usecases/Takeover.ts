/** Humans of the team who answer in place of the agent, from the dashboard (contract 3 and 4). */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { SessionUser } from "../domain/Access.ts"
import type { ConversationScope, ConversationState } from "../domain/Conversation.ts"
import { Conflict, NotFound } from "../domain/Errors.ts"
import type { ConversationId } from "../domain/Ids.ts"
import { ConversationStore } from "../store/Conversations.ts"
import { Ownership } from "./Ownership.ts"

type Act = "takeover" | "release" | "close" | "say"

/** From where each leads to where; what is not here is 409. `CLOSED` is for good. */
const transitions = {
  takeover: { from: ["AI_ACTIVE", "HUMAN_REQUESTED"], to: "HUMAN_ACTIVE" },
  release: { from: ["HUMAN_REQUESTED", "HUMAN_ACTIVE"], to: "AI_ACTIVE" },
  close: { from: ["AI_ACTIVE", "HUMAN_REQUESTED", "HUMAN_ACTIVE"], to: "CLOSED" },
  say: { from: ["AI_ACTIVE", "HUMAN_REQUESTED", "HUMAN_ACTIVE"], to: "HUMAN_ACTIVE" }
} as const satisfies Record<
  Act,
  { readonly from: ReadonlyArray<ConversationState>; readonly to: ConversationState }
>

const missing = () => new NotFound({ message: "There is no such conversation." })

const refused = (state: ConversationState) =>
  new Conflict({ message: `The conversation is ${state}.`, details: { state } })

export class Takeover extends Effect.Service<Takeover>()("usecases/Takeover", {
  effect: Effect.gen(function* () {
    const ownership = yield* Ownership
    const store = yield* ConversationStore

    const found = Effect.fn("Takeover.found")(function* (scope: ConversationScope, id: ConversationId) {
      const row = yield* store.find(scope, id)
      if (Option.isNone(row)) return yield* missing()
      return row.value
    })

    const done = Effect.fn("Takeover.done")(function* <A>(
      scope: ConversationScope,
      id: ConversationId,
      outcome: Option.Option<A>
    ) {
      if (Option.isSome(outcome)) return outcome.value
      return yield* refused((yield* found(scope, id)).state)
    })

    const act = Effect.fn("Takeover.act")(function* (
      { tenantId }: SessionUser,
      id: ConversationId,
      how: Exclude<Act, "say">
    ) {
      const change = { ...transitions[how], unanswered: "human" }
      yield* done({ tenantId }, id, yield* ownership.change({ tenantId }, id, change, () => Effect.void))
      return yield* found({ tenantId }, id)
    })

    /** The user answers from now on; what the agent is writing is not said. */
    const takeover = (by: SessionUser, id: ConversationId) => act(by, id, "takeover")

    /** The agent answers what is written from now on; it sees nothing of what was said before. */
    const release = (by: SessionUser, id: ConversationId) => act(by, id, "release")

    /** Nobody answers any more. A contact of a channel who writes again begins another conversation. */
    const close = (by: SessionUser, id: ConversationId) => act(by, id, "close")

    /** Says something as the user, who has taken over with it. Returns the message's id. */
    const say = Effect.fn("Takeover.say")(function* (
      { tenantId, userId }: SessionUser,
      id: ConversationId,
      content: string
    ) {
      const change = { ...transitions.say, unanswered: "human" }
      const said = yield* ownership.change({ tenantId }, id, change, ({ epoch }) =>
        ownership.say(id, epoch, { content, author: "human", userId })
      )
      const messageId = yield* done({ tenantId }, id, said)
      return { conversation: yield* found({ tenantId }, id), messageId }
    })

    return { takeover, release, close, say } as const
  })
}) {}
