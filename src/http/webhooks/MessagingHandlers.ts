import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import type * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as Effect from "effect/Effect"
import type { MessagingChannel } from "../../domain/Channel.ts"
import { Intake } from "../../usecases/channels/Intake.ts"
import { Api } from "../Api.ts"

/** Challenges and deliveries of messaging providers. */
export const MessagingHandlers = HttpApiBuilder.group(Api, "messaging", (handlers) =>
  Effect.gen(function* () {
    const intake = yield* Intake
    const challenge = ({
      urlParams
    }: {
      readonly urlParams: {
        readonly "hub.mode"?: string
        readonly "hub.verify_token"?: string
        readonly "hub.challenge"?: string
      }
    }) =>
      intake.challenge({
        mode: urlParams["hub.mode"],
        verifyToken: urlParams["hub.verify_token"],
        challenge: urlParams["hub.challenge"]
      })
    const deliver =
      (channel: MessagingChannel) =>
      ({ request }: { readonly request: HttpServerRequest.HttpServerRequest }) =>
        request.arrayBuffer.pipe(
          // The boundary knows what a body that cannot be read is answered with.
          Effect.orDie,
          Effect.flatMap((body) =>
            intake.deliver(channel, request.headers["x-hub-signature-256"], new Uint8Array(body))
          )
        )
    return handlers
      .handle("whatsappChallenge", challenge)
      .handle("messengerChallenge", challenge)
      .handleRaw("whatsapp", deliver("whatsapp"))
      .handleRaw("messenger", deliver("messenger"))
  })
)
