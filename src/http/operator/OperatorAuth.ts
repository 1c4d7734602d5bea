/** The operator's bearer token, compared in constant time for any length. */
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { createHash, timingSafeEqual } from "node:crypto"
import { workFor } from "../../concurrency/CurrentOwner.ts"
import { NotConfigured, Unauthorized } from "../../domain/Errors.ts"
import { OperatorAuth } from "../Auth.ts"
import { bearerToken } from "../BearerToken.ts"

const digest = (text: string) => createHash("sha256").update(text).digest()

/** Without a configured token every request is answered 503 `NOT_CONFIGURED`. */
export const layer = (token: Option.Option<Redacted.Redacted>): Layer.Layer<OperatorAuth> => {
  const expected = token.pipe(
    // An empty token would match a request without any token.
    Option.filter((secret) => Redacted.value(secret) !== ""),
    Option.map((secret) => digest(Redacted.value(secret)))
  )
  return Layer.succeed(
    OperatorAuth,
    Effect.gen(function* () {
      if (Option.isNone(expected)) {
        return yield* new NotConfigured({
          message: "The operator routes need SPOKE_OPERATOR_TOKEN to be set."
        })
      }
      const { headers } = yield* HttpServerRequest.HttpServerRequest
      if (timingSafeEqual(digest(bearerToken(headers["authorization"])), expected.value)) {
        yield* workFor("operator")
        return { actor: "operator" } as const
      }
      return yield* new Unauthorized({ message: "Send the operator's token as Authorization: Bearer." })
    })
  )
}
