/** A tenant with provisioning by SCIM, and requests in the forms that Entra ID and Okta document. */
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { call } from "../AccountsServer.ts"
import { connectedTenant } from "./SignOnWorld.ts"

export const userSchema = "urn:ietf:params:scim:schemas:core:2.0:User"
export const groupSchema = "urn:ietf:params:scim:schemas:core:2.0:Group"
export const patchSchema = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
export const errorSchema = "urn:ietf:params:scim:api:messages:2.0:Error"

export type Body = Readonly<Record<string, unknown>>

/** A tenant with a SCIM token. `ask` sends a request with it, and `body` is the whole body of the answer. */
export const provisionedTenant = (changes: Body = {}, issuer = "https://accounts.example") =>
  Effect.gen(function* () {
    const made = yield* connectedTenant(issuer, changes)
    const token = yield* call("POST", "/api/single-sign-on/scim", { cookie: made.cookie })
    expect(token.status).toBe(201)
    const secret: string = token.data.secret
    const ask = (method: string, path: string, body?: unknown, authorization = `Bearer ${secret}`) =>
      Effect.map(
        call(method, `/scim/v2${path}`, {
          headers: { authorization, "content-type": "application/scim+json" },
          ...(body === undefined ? {} : { body })
        }),
        ({ headers, status, text }) => ({
          status,
          type: headers.get("content-type"),
          body: text === "" ? null : JSON.parse(text)
        })
      )
    return { ...made, secret, ask }
  })

/** A user as Entra ID creates it. */
export const entraUser = (userName: string) => ({
  schemas: [userSchema, "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"],
  externalId: `ext-${userName}`,
  userName,
  active: true,
  emails: [{ primary: true, type: "work", value: userName }],
  meta: { resourceType: "User" },
  name: { formatted: "Ada L", familyName: "L", givenName: "Ada" },
  roles: []
})
/** A user as Okta creates it. */
export const oktaUser = (userName: string) => ({
  schemas: [userSchema],
  userName,
  name: { givenName: "Ada", familyName: "L" },
  emails: [{ primary: true, value: userName, type: "work" }],
  displayName: "Ada L",
  locale: "en-US",
  externalId: "00ujl29u0le5T6Aj10h7",
  groups: [],
  active: true
})
export const patch = (...operations: ReadonlyArray<Body>) => ({
  schemas: [patchSchema],
  Operations: operations
})
