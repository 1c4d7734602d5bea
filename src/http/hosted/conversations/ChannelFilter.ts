/** Checks the channel that a list is filtered by. An unknown one is an error, not an empty list. */
import * as Effect from "effect/Effect"
import { ChannelAdapters } from "../../../capabilities/ChannelAdapters.ts"
import { type ConversationChannel, ownChannels } from "../../../domain/conversations/Conversation.ts"
import { ValidationError, invalidField } from "../../../domain/Errors.ts"

/** The check. It refuses names that are neither built-in nor registered channels. */
export const makeCheck = Effect.map(
  ChannelAdapters,
  ({ all, named }) =>
    (channel: ConversationChannel | undefined): Effect.Effect<void, ValidationError> => {
      if (channel === undefined || ownChannels.includes(channel) || named(channel) !== null)
        return Effect.void
      const names = [...ownChannels, ...all.map(({ name }) => name)]
      const message = `Expected one of ${names.join(", ")}`
      return invalidField(["channel"], message, "There is no such channel.")
    }
)
