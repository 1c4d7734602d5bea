/** Tokens that open the realtime socket for one conversation, for one hour (contract 9). */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { SecretBox } from "../../capabilities/SecretBox.ts"
import type { ConversationId } from "../../domain/Ids.ts"
import { TurnSettings } from "./TurnSettings.ts"

const validity = Duration.hours(1)

export class RealtimeAccess extends Effect.Service<RealtimeAccess>()("usecases/chat/RealtimeAccess", {
  effect: Effect.gen(function* () {
    const box = yield* SecretBox
    const { realtimeUrl } = yield* TurnSettings
    /** A signed token and where to use it. */
    const issue = Effect.fn("RealtimeAccess.issue")(function* (conversationId: ConversationId) {
      const expires = (yield* Clock.currentTimeMillis) + Duration.toMillis(validity)
      const realtimeToken = yield* box.sign("realtime", JSON.stringify({ conversationId, expires }))
      return { realtimeToken, realtimeUrl }
    })
    return { issue } as const
  })
}) {}
