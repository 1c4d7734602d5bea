/** The user's own passkeys, and signing in with one. The code for the authenticator is loaded on demand. */
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

const library = () => import("@simplewebauthn/browser")

/** Asks the browser for a new passkey, and stores it under `name`. */
export const addPasskey = async (name: string) => {
  const { options } = await call<typeof CreationChallenge.Encoded>("POST", "/api/auth/passkeys/challenge")
  const { startRegistration } = await library()
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

/** Asks the browser for any of its passkeys for this address. */
export const signInWithPasskey = async () => {
  const { options } = await call<typeof RequestChallenge.Encoded>("POST", "/api/auth/passkey/challenge")
  const { startAuthentication } = await library()
  const { id, rawId, response, type } = await startAuthentication({ optionsJSON: options })
  const { authenticatorData, clientDataJSON, signature, userHandle = null } = response
  return call<typeof SignedIn.Encoded, typeof SignInWithPasskey.Encoded>("POST", "/api/auth/passkey", {
    body: {
      credential: { id, rawId, type, response: { authenticatorData, clientDataJSON, signature, userHandle } }
    }
  })
}

/** Whether the browser supports passkeys for this address. IP addresses are not supported. */
export const knowsPasskeys = () =>
  typeof PublicKeyCredential !== "undefined" && !/^[\d.]+$|:/.test(location.hostname)

/** Whether the user or the browser cancelled it. */
export const isBrokenOff = (problem: unknown) =>
  problem instanceof Error && (problem.name === "NotAllowedError" || problem.name === "AbortError")

/** Whether the device already has a passkey of this user. */
export const isKnownDevice = (problem: unknown) =>
  problem instanceof Error && problem.name === "InvalidStateError"
