import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { WebhookIngress } from "../../usecases/channels/WebhookIngress.ts"
import { Api } from "../Api.ts"

/** Challenges of messaging providers. */
export const MessagingHandlers = HttpApiBuilder.group(Api, "messaging", (handlers) =>
  Effect.gen(function* () {
    const ingress = yield* WebhookIngress
    const challenge = ({
      urlParams
    }: {
      readonly urlParams: {
        readonly "hub.mode"?: string
        readonly "hub.verify_token"?: string
        readonly "hub.challenge"?: string
      }
    }) =>
      ingress.challenge({
        mode: urlParams["hub.mode"],
        verifyToken: urlParams["hub.verify_token"],
        challenge: urlParams["hub.challenge"]
      })
    return handlers.handle("whatsappChallenge", challenge).handle("messengerChallenge", challenge)
  })
)
