/** Cookie `spoke_sso`: binds a single sign-on to the browser that began it, for as long as it may take. */
import * as HttpApp from "@effect/platform/HttpApp"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { signOnCallback } from "./SingleSignOnApi.ts"

const name = "spoke_sso"

export class SignOnCookie extends Context.Tag("http/hosted/accounts/SignOnCookie")<
  SignOnCookie,
  {
    /** Where providers send browsers back to. */
    readonly redirectUri: string
    /** The response to come sets the cookie. */
    readonly set: (flow: Redacted.Redacted, lasts: Duration.Duration) => Effect.Effect<void>
    /** What the request carries; the response to come removes it, so that it is used once. */
    readonly take: Effect.Effect<Option.Option<Redacted.Redacted>, never, HttpServerRequest.HttpServerRequest>
  }
>() {}

/** `appUrl` is `{app_url}`. */
export const layer = (appUrl: string): Layer.Layer<SignOnCookie> => {
  const attributes = {
    httpOnly: true,
    // The provider's redirect is another site's navigation.
    sameSite: "lax",
    path: "/api/auth/sso",
    secure: new URL(appUrl).protocol === "https:"
  } as const
  const put = (value: string, maxAge: Duration.DurationInput) =>
    HttpApp.appendPreResponseHandler((_, response) =>
      Effect.orDie(HttpServerResponse.setCookie(response, name, value, { ...attributes, maxAge }))
    )
  return Layer.succeed(SignOnCookie, {
    redirectUri: new URL(signOnCallback, appUrl).href,
    set: (flow, lasts) => put(Redacted.value(flow), lasts),
    take: Effect.zipRight(
      put("", 0),
      Effect.map(HttpServerRequest.HttpServerRequest, ({ cookies }) =>
        Option.map(Option.fromNullable(cookies[name]), Redacted.make)
      )
    )
  })
}
