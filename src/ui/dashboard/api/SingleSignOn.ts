/** Single sign-on with the tenant's identity provider. */
import { queryOptions } from "@tanstack/react-query"
import type {
  BeginSignOn,
  Connection as Declared,
  PutConnection,
  SignOnProblem as Problem
} from "../../../domain/accounts/SingleSignOn.ts"
import type {
  BegunSignOn,
  ConnectionAnswer,
  MadeScimToken,
  ScimAnswer
} from "../../../http/hosted/accounts/SingleSignOnApi.ts"
import { call } from "./Client.ts"

export type Connection = typeof Declared.Encoded
export type SignOnProblem = typeof Problem.Encoded

export const singleSignOn = queryOptions({
  queryKey: ["single-sign-on"],
  queryFn: ({ signal }) => call<typeof ConnectionAnswer.Encoded>("GET", "/api/single-sign-on", { signal })
})

export const connect = (body: typeof PutConnection.Encoded) =>
  call<typeof ConnectionAnswer.Encoded, typeof PutConnection.Encoded>("PUT", "/api/single-sign-on", { body })

export const disconnect = () => call("DELETE", "/api/single-sign-on")

/** The address of the identity provider's sign-in page. */
export const beginSignOn = (email: string) =>
  call<typeof BegunSignOn.Encoded, typeof BeginSignOn.Encoded>("POST", "/api/auth/sso", { body: { email } })

/** The token with which the identity provider provisions users; null without one. */
export const provisioning = queryOptions({
  queryKey: ["provisioning"],
  queryFn: ({ signal }) => call<typeof ScimAnswer.Encoded>("GET", "/api/single-sign-on/scim", { signal })
})

export const makeProvisioningToken = () =>
  call<typeof MadeScimToken.Encoded>("POST", "/api/single-sign-on/scim")

export const revokeProvisioningToken = () => call("DELETE", "/api/single-sign-on/scim")
