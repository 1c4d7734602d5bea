/** Verifies passkeys with `@simplewebauthn/server`, which is loaded on first use. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { PasskeyProofs, PasskeyRejected } from "../Credentials.ts"

const library = Effect.promise(() => import("@simplewebauthn/server"))

/** ECDSA with P-256, Ed25519 and RSA with PKCS #1, each with SHA-256: the algorithms of common authenticators. */
const algorithms = [-7, -8, -257]

const maxReasonCharacters = 200

const rejected = (thrown: unknown) =>
  new PasskeyRejected({
    message: (typeof thrown === "object" && thrown !== null && "message" in thrown
      ? String(thrown.message)
      : "It cannot be read."
    ).slice(0, maxReasonCharacters)
  })

const attempt = <A>(verify: () => Promise<A>) => Effect.tryPromise({ try: verify, catch: rejected })

export const layerWebAuthn: Layer.Layer<PasskeyProofs> = Layer.succeed(PasskeyProofs, {
  algorithms,
  verifyRegistration: Effect.fn("PasskeyProofs.verifyRegistration")(function* (
    credential,
    { challenge, origin, rpId }
  ) {
    const { verifyRegistrationResponse } = yield* library
    const { registrationInfo, verified } = yield* attempt(() =>
      verifyRegistrationResponse({
        response: { ...credential, clientExtensionResults: {} },
        expectedChallenge: challenge,
        expectedOrigin: origin,
        expectedRPID: rpId,
        supportedAlgorithmIDs: algorithms
      })
    )
    if (!verified) return yield* new PasskeyRejected({ message: "The attestation is invalid." })
    const { credential: made, credentialBackedUp: backedUp } = registrationInfo
    return { credentialId: made.id, publicKey: made.publicKey, counter: made.counter, backedUp }
  }),
  verifySignIn: Effect.fn("PasskeyProofs.verifySignIn")(function* (
    credential,
    { challenge, origin, rpId },
    known
  ) {
    const { verifyAuthenticationResponse } = yield* library
    const { userHandle, ...response } = credential.response
    const { authenticationInfo, verified } = yield* attempt(() =>
      verifyAuthenticationResponse({
        response: {
          ...credential,
          response: { ...response, ...(typeof userHandle === "string" ? { userHandle } : {}) },
          clientExtensionResults: {}
        },
        expectedChallenge: challenge,
        expectedOrigin: origin,
        expectedRPID: rpId,
        credential: {
          id: known.credentialId,
          publicKey: new Uint8Array(known.publicKey),
          counter: known.counter
        }
      })
    )
    if (!verified) return yield* new PasskeyRejected({ message: "The signature is not the key's." })
    const { credentialBackedUp: backedUp, newCounter: counter } = authenticationInfo
    return { counter, backedUp }
  })
})
