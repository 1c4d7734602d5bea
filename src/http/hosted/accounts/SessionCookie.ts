/** Cookie `spoke_session`: out of reach of scripts and other sites, over https where the app is. */
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

/** The token that the request carries. */
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
    /** The response to come sets the cookie, for as long as the session lasts. */
    readonly set: (token: Redacted.Redacted, lasts: Duration.Duration) => Effect.Effect<void>
    /** The response to come removes it. */
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
