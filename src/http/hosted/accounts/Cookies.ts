/** Cookies with secrets. */
import type { Cookie } from "@effect/platform/Cookies"
import * as HttpApp from "@effect/platform/HttpApp"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"

/** The value of the request's cookie `name`. */
export const secretCookie = (
  name: string
): Effect.Effect<Option.Option<Redacted.Redacted>, never, HttpServerRequest.HttpServerRequest> =>
  Effect.map(HttpServerRequest.HttpServerRequest, ({ cookies }) =>
    Option.map(Option.fromNullable(cookies[name]), Redacted.make)
  )

/** Sets the cookie with the response. A `maxAge` of 0 removes it. */
export const setCookie = (name: string, value: string, options: NonNullable<Cookie["options"]>) =>
  HttpApp.appendPreResponseHandler((_, response) =>
    Effect.orDie(HttpServerResponse.setCookie(response, name, value, options))
  )
