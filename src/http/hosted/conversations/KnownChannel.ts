/** Filters by channel: a name that no conversation can have is a mistake, and not an empty list. */
import * as Effect from "effect/Effect"
import { ChannelAdapters } from "../../../capabilities/ChannelAdapters.ts"
import { type ConversationChannel, ownChannels } from "../../../domain/conversations/Conversation.ts"
import { ValidationError } from "../../../domain/Errors.ts"

/** Refuses what is neither a channel of ours nor a registered one. */
export const make = Effect.map(
  ChannelAdapters,
  ({ all, named }) =>
    (channel: ConversationChannel | undefined): Effect.Effect<void, ValidationError> => {
      if (channel === undefined || ownChannels.includes(channel) || named(channel) !== null)
        return Effect.void
      const names = [...ownChannels, ...all.map(({ name }) => name)]
      const message = `Expected one of ${names.join(", ")}`
      return new ValidationError({
        message: "There is no such channel.",
        details: { issues: [{ path: ["channel"], message }] }
      })
    }
)
