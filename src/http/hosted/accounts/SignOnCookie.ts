/** Cookies that bind a sign-in to the browser that began it: `spoke_sso` for single sign-on. */
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { scimPath } from "../../scim/Problem.ts"
import { signOnCallback } from "./SingleSignOnApi.ts"
import { secretCookie, setCookie } from "./Cookies.ts"

/** A cookie with the sealed state of a flow. */
export interface FlowCookie {
  /** Sets the cookie with the response. */
  readonly set: (flow: Redacted.Redacted, maxAge: Duration.Duration) => Effect.Effect<void>
  /** Reads the cookie, and removes it with the response, so that it is used once. */
  readonly take: Effect.Effect<Option.Option<Redacted.Redacted>, never, HttpServerRequest.HttpServerRequest>
}

/** `appUrl` is `{app_url}`. The cookie is sent to `path` and below. */
export const flowCookie = (
  appUrl: string,
  { name, ...given }: { readonly name: string; readonly path: string; readonly sameSite: "lax" | "strict" }
): FlowCookie => {
  const attributes = { ...given, httpOnly: true, secure: new URL(appUrl).protocol === "https:" }
  return {
    set: (flow, maxAge) => setCookie(name, Redacted.value(flow), { ...attributes, maxAge }),
    take: Effect.zipRight(setCookie(name, "", { ...attributes, maxAge: 0 }), secretCookie(name))
  }
}

export class SignOnCookie extends Context.Tag("http/hosted/accounts/SignOnCookie")<
  SignOnCookie,
  FlowCookie & {
    /** The address to which providers return browsers. */
    readonly redirectUri: string
    /** The address for provisioning. */
    readonly scimUrl: string
  }
>() {}

/** `appUrl` is `{app_url}`. */
export const layer = (appUrl: string): Layer.Layer<SignOnCookie> =>
  Layer.succeed(SignOnCookie, {
    // Lax, because the provider's redirect is a cross-site navigation.
    ...flowCookie(appUrl, { name: "spoke_sso", path: "/api/auth/sso", sameSite: "lax" }),
    redirectUri: new URL(signOnCallback, appUrl).href,
    scimUrl: new URL(scimPath, appUrl).href
  })
