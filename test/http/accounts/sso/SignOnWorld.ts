/** A tenant with a connection to an identity provider, and a browser that signs in there. */
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { reset } from "../../../TestDatabase.ts"
import { type Answer, appUrl, call, operate, signedIn } from "../AccountsServer.ts"
import { clientId, clientSecret, signInAt } from "./Providers.ts"

export const redirectUri = `${appUrl}/api/auth/sso/callback`

export const settings = (issuer: string) => ({
  issuer,
  clientId,
  clientSecret,
  domains: ["acme.example"],
  trustsEmail: false,
  groupsClaim: "groups",
  groupRoles: [],
  defaultRole: "viewer",
  createsPeople: true,
  allowsPasswords: true
})

/** A tenant whose owner is `owner@acme.example`, connected to `issuer`, with its domain confirmed. */
export const connectedTenant = (issuer: string, changes: Readonly<Record<string, unknown>> = {}) =>
  Effect.gen(function* () {
    yield* reset
    const made = yield* signedIn("owner@acme.example")
    const put = yield* call("PUT", "/api/single-sign-on", {
      cookie: made.cookie,
      body: { ...settings(issuer), ...changes }
    })
    expect([put.status, put.error]).toEqual([200, undefined])
    const confirmed = yield* operate("PUT", `/api/operator/tenants/${made.tenantId}/domains/acme.example`)
    expect(confirmed.status).toBe(200)
    return made
  })

const cookieNamed = (answer: Answer, name: string) =>
  answer.headers
    .getSetCookie()
    .map((line) => line.split(";")[0] ?? "")
    .find((pair) => pair.startsWith(`${name}=`) && pair !== `${name}=`)

export const beginSignOn = (email = "ada@acme.example") =>
  Effect.gen(function* () {
    const begun = yield* call("POST", "/api/auth/sso", { body: { email } })
    expect([begun.status, begun.error]).toEqual([200, undefined])
    return { page: String(begun.data.url), flow: cookieNamed(begun, "spoke_sso") ?? "" }
  })

export const returnFromProvider = (query: URLSearchParams, flow: string) =>
  Effect.map(call("GET", `/api/auth/sso/callback?${query}`, { headers: { cookie: flow } }), (answer) => ({
    location: answer.headers.get("location"),
    session: cookieNamed(answer, "spoke_session"),
    answer
  }))

/** A whole sign-in at the real provider. */
export const signIn = (login: string, email?: string) =>
  Effect.gen(function* () {
    const { flow, page } = yield* beginSignOn(email)
    const returned = yield* Effect.promise(() => signInAt(page, login))
    expect(`${returned.origin}${returned.pathname}`).toBe(redirectUri)
    return yield* returnFromProvider(returned.searchParams, flow)
  })

export const sessionUser = (session: string | undefined) =>
  Effect.map(call("GET", "/api/auth/session", { cookie: session ?? "" }), ({ data, status }) =>
    status === 200 ? { email: data.user.email, role: data.user.role } : status
  )

export const auditActions = (cookie: string) =>
  Effect.map(call("GET", "/api/audit", { cookie }), ({ data }) =>
    data.entries.map(({ action }: { readonly action: string }) => action)
  )
