/** Cookie `spoke_session`: not readable by scripts, not sent by other sites, and https only when the app uses https. */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { secretCookie, setCookie } from "./Cookies.ts"

const name = "spoke_session"

/** The token in the request's cookie. */
export const sessionToken = secretCookie(name)

export class SessionCookie extends Context.Tag("http/hosted/accounts/SessionCookie")<
  SessionCookie,
  {
    /** Sets the cookie with the response, for the lifetime of the session. */
    readonly set: (token: Redacted.Redacted, maxAge: Duration.Duration) => Effect.Effect<void>
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
  return Layer.succeed(SessionCookie, {
    set: (token, maxAge) => setCookie(name, Redacted.value(token), { ...attributes, maxAge }),
    clear: setCookie(name, "", { ...attributes, maxAge: 0 })
  })
}
