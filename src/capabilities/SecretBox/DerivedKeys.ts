/**
 * {@link SecretBox} with Node's cryptography. HKDF-SHA-256 (RFC 5869) derives a key for each purpose and use.
 *
 * Signed: `<text>.<tag>`. Sealed: `v1.<key id>.<nonce, ciphertext and tag>`. All parts but the names are base64url.
 */
import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  hkdfSync,
  randomBytes,
  timingSafeEqual
} from "node:crypto"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { type Purpose, SecretBox } from "../SecretBox.ts"

/**
 * Master secrets: the current one first, then older ones that are still accepted by {@link SecretBox} `verify` and
 * `open`.
 */
export type MasterSecrets = readonly [Redacted.Redacted, ...ReadonlyArray<Redacted.Redacted>]

const version = "v1"
const keyBytes = 32
const idBytes = 6
const nonceBytes = 12
const tagBytes = 16

const derive = (master: Redacted.Redacted, info: string, bytes: number): Buffer =>
  Buffer.from(hkdfSync("sha256", Redacted.value(master), "", `spoke ${version} ${info}`, bytes))

const encode = (bytes: Buffer): string => bytes.toString("base64url")

/** Null for anything but the canonical encoding, because decoders ignore invalid characters and the last bits. */
const decode = (text: string): Buffer | null => {
  const bytes = Buffer.from(text, "base64url")
  return encode(bytes) === text ? bytes : null
}

/** The id of a master secret, which all sealed values contain. The secret cannot be derived from it. */
export const keyIdOf = (master: Redacted.Redacted): string => encode(derive(master, "key id", idBytes))

/** The operations of one master secret. Keys are derived once and kept in closures, so that they cannot be logged. */
const makeKeys = (master: Redacted.Redacted) => {
  const derived = new Map<string, Buffer>()
  const key = (use: "sign" | "seal", purpose: Purpose): Buffer => {
    const name = `${use} ${purpose}`
    const bytes = derived.get(name) ?? derive(master, name, keyBytes)
    derived.set(name, bytes)
    return bytes
  }
  const id = keyIdOf(master)
  const context = (purpose: Purpose) => Buffer.from(`${version}.${id}.${purpose}`)

  const mac = (purpose: Purpose, bytes: Buffer) =>
    createHmac("sha256", key("sign", purpose)).update(bytes).digest()

  const encrypt = (purpose: Purpose, text: string): Buffer => {
    const nonce = randomBytes(nonceBytes)
    const cipher = createCipheriv("aes-256-gcm", key("seal", purpose), nonce, { authTagLength: tagBytes })
    cipher.setAAD(context(purpose))
    return Buffer.concat([nonce, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()])
  }

  const decrypt = Option.liftThrowable((purpose: Purpose, sealed: Buffer): string => {
    const nonce = sealed.subarray(0, nonceBytes)
    const decipher = createDecipheriv("aes-256-gcm", key("seal", purpose), nonce, { authTagLength: tagBytes })
    decipher.setAAD(context(purpose))
    decipher.setAuthTag(sealed.subarray(-tagBytes))
    const text = decipher.update(sealed.subarray(nonceBytes, -tagBytes))
    return Buffer.concat([text, decipher.final()]).toString("utf8")
  })

  return { id, mac, encrypt, decrypt }
}

const make = ([current, ...previous]: MasterSecrets): SecretBox["Type"] => {
  const newest = makeKeys(current)
  const all = [newest, ...previous.map(makeKeys)]

  const verify = (purpose: Purpose, signed: string): Option.Option<string> => {
    const [text = "", tag = "", ...rest] = signed.split(".")
    const bytes = decode(text)
    const given = decode(tag)
    if (bytes === null || given === null || given.length !== keyBytes || rest.length > 0) return Option.none()
    const matches = all.filter((keys) => timingSafeEqual(keys.mac(purpose, bytes), given))
    return matches.length > 0 ? Option.some(bytes.toString("utf8")) : Option.none()
  }

  const open = (purpose: Purpose, sealed: string): Option.Option<string> => {
    const [format, id, body = "", ...rest] = sealed.split(".")
    const keys = all.find((candidate) => candidate.id === id)
    const bytes = decode(body)
    if (format !== version || keys === undefined || rest.length > 0) return Option.none()
    if (bytes === null || bytes.length < nonceBytes + tagBytes) return Option.none()
    return keys.decrypt(purpose, bytes)
  }

  return {
    sign: (purpose, text) =>
      Effect.sync(() => {
        const bytes = Buffer.from(text, "utf8")
        return `${encode(bytes)}.${encode(newest.mac(purpose, bytes))}`
      }),
    verify: (purpose, signed) => Effect.sync(() => verify(purpose, signed)),
    seal: (purpose, text) =>
      Effect.sync(() => `${version}.${newest.id}.${encode(newest.encrypt(purpose, text))}`),
    open: (purpose, sealed) => Effect.sync(() => open(purpose, sealed)),
    under: (secret) => make([secret])
  }
}

/** Signs and seals with the first secret; verifies and opens with all of them. */
export const layer = (masters: MasterSecrets): Layer.Layer<SecretBox> =>
  Layer.sync(SecretBox, () => make(masters))
