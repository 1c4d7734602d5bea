import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import { WebhookIngress } from "../../usecases/channels/WebhookIngress.ts"
import { Api } from "../Api.ts"
import type { Subscription } from "./MessagingApi.ts"

/** Challenges of messaging providers, and deliveries to single accounts. */
export const MessagingHandlers = HttpApiBuilder.group(Api, "messaging", (handlers) =>
  Effect.gen(function* () {
    const ingress = yield* WebhookIngress
    const challenge = ({ urlParams }: { readonly urlParams: Subscription }) =>
      ingress.challenge({
        mode: urlParams["hub.mode"],
        verifyToken: urlParams["hub.verify_token"],
        challenge: urlParams["hub.challenge"]
      })
    return handlers
      .handle("whatsappChallenge", challenge)
      .handle("messengerChallenge", challenge)
      .handleRaw("deliver", ({ path: { account, channel }, request }) =>
        Effect.gen(function* () {
          // The boundary answers for a body that cannot be read.
          const body = new Uint8Array(yield* Effect.orDie(request.arrayBuffer))
          const header = (name: string) => request.headers[name]
          const delivery = { header, body, now: yield* DateTime.now }
          const answer = yield* ingress.deliverTo(channel, account, delivery)
          return typeof answer === "string" ? HttpServerResponse.text(answer) : answer
        })
      )
  })
)
