/** Cookies that bind a sign-in to the browser that began it, for as long as it may take: `spoke_sso` a single sign-on. */
import * as HttpApp from "@effect/platform/HttpApp"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { scimPath } from "../../scim/Problem.ts"
import { signOnCallback } from "./SingleSignOnApi.ts"

/** What a browser keeps between the begin and the end of something. */
export interface FlowCookie {
  /** The response to come sets the cookie. */
  readonly set: (flow: Redacted.Redacted, lasts: Duration.Duration) => Effect.Effect<void>
  /** What the request carries; the response to come removes it, so that it is used once. */
  readonly take: Effect.Effect<Option.Option<Redacted.Redacted>, never, HttpServerRequest.HttpServerRequest>
}

/** `appUrl` is `{app_url}`; the cookie is sent to `path` and below. */
export const flowCookie = (
  appUrl: string,
  { name, ...given }: { readonly name: string; readonly path: string; readonly sameSite: "lax" | "strict" }
): FlowCookie => {
  const attributes = { ...given, httpOnly: true, secure: new URL(appUrl).protocol === "https:" }
  const put = (value: string, maxAge: Duration.DurationInput) =>
    HttpApp.appendPreResponseHandler((_, response) =>
      Effect.orDie(HttpServerResponse.setCookie(response, name, value, { ...attributes, maxAge }))
    )
  return {
    set: (flow, lasts) => put(Redacted.value(flow), lasts),
    take: Effect.zipRight(
      put("", 0),
      Effect.map(HttpServerRequest.HttpServerRequest, ({ cookies }) =>
        Option.map(Option.fromNullable(cookies[name]), Redacted.make)
      )
    )
  }
}

export class SignOnCookie extends Context.Tag("http/hosted/accounts/SignOnCookie")<
  SignOnCookie,
  FlowCookie & {
    /** Where providers send browsers back to. */
    readonly redirectUri: string
    /** Where they provision. */
    readonly scimUrl: string
  }
>() {}

/** `appUrl` is `{app_url}`. */
export const layer = (appUrl: string): Layer.Layer<SignOnCookie> =>
  Layer.succeed(SignOnCookie, {
    // The provider's redirect is another site's navigation.
    ...flowCookie(appUrl, { name: "spoke_sso", path: "/api/auth/sso", sameSite: "lax" }),
    redirectUri: new URL(signOnCallback, appUrl).href,
    scimUrl: new URL(scimPath, appUrl).href
  })
