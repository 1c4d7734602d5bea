/** A software authenticator for passkeys: P-256 keys, its own CBOR encoder, and answers that a test can falsify. */
import { createHash, createSign, generateKeyPairSync, type KeyObject, randomBytes } from "node:crypto"

const encode = (bytes: Uint8Array) => Buffer.from(bytes).toString("base64url")
const sha256 = (bytes: string | Uint8Array) => createHash("sha256").update(bytes).digest()

type Cbor = number | string | Uint8Array | ReadonlyArray<readonly [number | string, Cbor]>

const head = (kind: number, length: number): Buffer => {
  if (length < 24) return Buffer.from([(kind << 5) | length])
  if (length < 256) return Buffer.from([(kind << 5) | 24, length])
  return Buffer.from([(kind << 5) | 25, length >> 8, length & 255])
}

/** Encodes numbers, strings, bytes, and maps, which are lists of pairs. */
const cbor = (value: Cbor): Buffer => {
  if (typeof value === "number") return value < 0 ? head(1, -1 - value) : head(0, value)
  if (typeof value === "string") return Buffer.concat([head(3, Buffer.byteLength(value)), Buffer.from(value)])
  if (value instanceof Uint8Array) return Buffer.concat([head(2, value.length), value])
  return Buffer.concat([head(5, value.length), ...value.flatMap(([key, each]) => [cbor(key), cbor(each)])])
}

/** What is different from a correct answer. */
interface Deviations {
  /** The origin of the requesting page. */
  readonly origin?: string
  readonly challenge?: string
  readonly type?: string
  readonly rpId?: string
  /** The authenticator did not verify the user. */
  readonly unverified?: boolean
  /** The signature counter; by default it counts. */
  readonly counter?: number
  readonly userHandle?: string
  /** The id of another passkey. */
  readonly credentialId?: string
}

interface StoredPasskey {
  readonly id: string
  readonly rpId: string
  readonly userHandle: string
  readonly privateKey: KeyObject
  counter: number
}

const present = 0x01
const verified = 0x04
const attested = 0x40

/** An authenticator that is used by pages of `origin`. */
export const softAuthenticator = (origin: string) => {
  const clientData = (type: string, challenge: string, deviations: Deviations) =>
    Buffer.from(
      JSON.stringify({
        type: deviations.type ?? type,
        challenge: deviations.challenge ?? challenge,
        origin: deviations.origin ?? origin,
        crossOrigin: false
      })
    )
  const authenticatorData = (
    rpId: string,
    counter: number,
    flags: number,
    rest: Uint8Array,
    deviations: Deviations
  ) => {
    const count = Buffer.alloc(4)
    count.writeUInt32BE(deviations.counter ?? counter)
    const seen = present | (deviations.unverified === true ? 0 : verified) | flags
    return Buffer.concat([sha256(deviations.rpId ?? rpId), Buffer.from([seen]), count, rest])
  }

  /** Answers a challenge to create a passkey. */
  const create = (
    options: {
      readonly challenge: string
      readonly rp: { readonly id: string }
      readonly user: { readonly id: string }
    },
    deviations: Deviations = {}
  ) => {
    const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" })
    const { x = "", y = "" } = publicKey.export({ format: "jwk" })
    const rawId =
      deviations.credentialId === undefined
        ? randomBytes(32)
        : Buffer.from(deviations.credentialId, "base64url")
    const cose = cbor([
      [1, 2],
      [3, -7],
      [-1, 1],
      [-2, Buffer.from(x, "base64url")],
      [-3, Buffer.from(y, "base64url")]
    ])
    const length = Buffer.from([rawId.length >> 8, rawId.length & 255])
    const rest = Buffer.concat([Buffer.alloc(16), length, rawId, cose])
    const authData = authenticatorData(options.rp.id, 0, attested, rest, deviations)
    const passkey: StoredPasskey = {
      id: encode(rawId),
      rpId: options.rp.id,
      userHandle: options.user.id,
      privateKey,
      counter: 0
    }
    const credential = {
      id: passkey.id,
      rawId: passkey.id,
      type: "public-key",
      response: {
        clientDataJSON: encode(clientData("webauthn.create", options.challenge, deviations)),
        attestationObject: encode(
          cbor([
            ["fmt", "none"],
            ["attStmt", []],
            ["authData", authData]
          ])
        )
      }
    }
    return { passkey, credential }
  }

  /** Answers a challenge to sign in with a passkey. */
  const get = (
    options: { readonly challenge: string },
    passkey: StoredPasskey,
    deviations: Deviations = {}
  ) => {
    passkey.counter += 1
    const data = authenticatorData(passkey.rpId, passkey.counter, 0, Buffer.alloc(0), deviations)
    const client = clientData("webauthn.get", options.challenge, deviations)
    const signature = createSign("sha256")
      .update(Buffer.concat([data, sha256(client)]))
      .sign(passkey.privateKey)
    return {
      id: passkey.id,
      rawId: passkey.id,
      type: "public-key",
      response: {
        clientDataJSON: encode(client),
        authenticatorData: encode(data),
        signature: encode(signature),
        userHandle: deviations.userHandle ?? passkey.userHandle
      }
    }
  }

  return { create, get }
}
