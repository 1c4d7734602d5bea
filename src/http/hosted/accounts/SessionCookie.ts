/** Cookie `spoke_session`: not readable by scripts, not sent by other sites, and https only when the app uses https. */
import * as HttpApp from "@effect/platform/HttpApp"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"

const name = "spoke_session"

/** The token in the request's cookie. */
export const sessionToken: Effect.Effect<
  Option.Option<Redacted.Redacted>,
  never,
  HttpServerRequest.HttpServerRequest
> = Effect.map(HttpServerRequest.HttpServerRequest, ({ cookies }) =>
  Option.map(Option.fromNullable(cookies[name]), Redacted.make)
)

export class SessionCookie extends Context.Tag("http/hosted/accounts/SessionCookie")<
  SessionCookie,
  {
    /** Sets the cookie with the response, for the lifetime of the session. */
    readonly set: (token: Redacted.Redacted, lasts: Duration.Duration) => Effect.Effect<void>
    /** Removes the cookie with the response. */
    readonly clear: Effect.Effect<void>
  }
>() {}

/** `appUrl` is `{app_url}`. */
export const layer = (appUrl: string): Layer.Layer<SessionCookie> => {
  const attributes = {
    httpOnly: true,
    sameSite: "lax",
    path: "/",
    secure: new URL(appUrl).protocol === "https:"
  } as const
  const put = (value: string, maxAge: Duration.DurationInput) =>
    HttpApp.appendPreResponseHandler((_, response) =>
      Effect.orDie(HttpServerResponse.setCookie(response, name, value, { ...attributes, maxAge }))
    )
  return Layer.succeed(SessionCookie, {
    set: (token, lasts) => put(Redacted.value(token), lasts),
    clear: put("", 0)
  })
}
