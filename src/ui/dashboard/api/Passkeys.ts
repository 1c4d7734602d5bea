/** The user's own passkeys, and signing in with one. The library for WebAuthn is loaded on demand. */
import { queryOptions } from "@tanstack/react-query"
import type {
  CreatePasskey,
  Passkey as Declared,
  SignInWithPasskey
} from "../../../domain/accounts/Passkey.ts"
import type {
  CreationChallenge,
  OnePasskey,
  PasskeyList,
  RequestChallenge
} from "../../../http/hosted/accounts/passkeys/PasskeysApi.ts"
import type { SignedIn } from "../../../http/hosted/accounts/SessionsApi.ts"
import { call } from "./Client.ts"

export type Passkey = typeof Declared.Encoded

export const passkeys = queryOptions({
  queryKey: ["passkeys"],
  queryFn: ({ signal }) => call<typeof PasskeyList.Encoded>("GET", "/api/auth/passkeys", { signal })
})

const loadLibrary = () => import("@simplewebauthn/browser")

/** Creates a passkey in the browser, and stores it under `name`. */
export const addPasskey = async (name: string) => {
  const { options } = await call<typeof CreationChallenge.Encoded>("POST", "/api/auth/passkeys/challenge")
  const { startRegistration } = await loadLibrary()
  const { id, rawId, response, type } = await startRegistration({
    optionsJSON: {
      ...options,
      pubKeyCredParams: [...options.pubKeyCredParams],
      excludeCredentials: [...options.excludeCredentials]
    }
  })
  const { attestationObject, clientDataJSON } = response
  return call<typeof OnePasskey.Encoded, typeof CreatePasskey.Encoded>("POST", "/api/auth/passkeys", {
    body: { name, credential: { id, rawId, type, response: { attestationObject, clientDataJSON } } }
  })
}

export const removePasskey = (id: string) => call("DELETE", `/api/auth/passkeys/${id}`)

/** Signs in with any passkey that the browser has for this host. */
export const signInWithPasskey = async () => {
  const { options } = await call<typeof RequestChallenge.Encoded>("POST", "/api/auth/passkey/challenge")
  const { startAuthentication } = await loadLibrary()
  const { id, rawId, response, type } = await startAuthentication({ optionsJSON: options })
  const { authenticatorData, clientDataJSON, signature, userHandle = null } = response
  return call<typeof SignedIn.Encoded, typeof SignInWithPasskey.Encoded>("POST", "/api/auth/passkey", {
    body: {
      credential: { id, rawId, type, response: { authenticatorData, clientDataJSON, signature, userHandle } }
    }
  })
}

/** Whether the browser supports passkeys for this host. It never does for IP addresses. */
export const supportsPasskeys = () =>
  typeof PublicKeyCredential !== "undefined" && !/^[\d.]+$|:/.test(location.hostname)

/** True if the user or the browser cancelled the request. */
export const isCancelled = (problem: unknown) =>
  problem instanceof Error && (problem.name === "NotAllowedError" || problem.name === "AbortError")

/** True if the device already has a passkey of this user. */
export const isAlreadyRegistered = (problem: unknown) =>
  problem instanceof Error && problem.name === "InvalidStateError"
