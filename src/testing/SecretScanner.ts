/**
 * A kit for tests that no secret is disclosed, for Spoke and for programs that embed it: send canaries through every
 * input, then search everything that was answered, logged, sent or stored for them.
 */
import * as Encoding from "effect/Encoding"

const utf8 = new TextEncoder()

/** A unique secret of 36 characters or more, different at every call. */
export const make = (name: string): string => `canary-${name}-${globalThis.crypto.randomUUID()}`

/** The base64 text of `bytes` for each possible offset in the encoded text. */
const base64 = (bytes: Uint8Array): ReadonlyArray<string> =>
  [0, 1, 2].map((before) => {
    const encoded = Encoding.encodeBase64(Uint8Array.from([...new Uint8Array(before), ...bytes]))
    return encoded.slice(before === 0 ? 0 : before + 1, Math.floor(((before + bytes.length) * 8) / 6))
  })

/**
 * The forms in which `secret` may appear: as it is, escaped for JSON and addresses, in hexadecimal, and in base64 of
 * either alphabet.
 */
export const formsOf = (secret: string): ReadonlyArray<string> => {
  const bytes = utf8.encode(secret)
  const hex = Encoding.encodeHex(bytes)
  const encoded = base64(bytes)
  const forms = [
    secret,
    JSON.stringify(secret).slice(1, -1),
    encodeURIComponent(secret),
    hex,
    hex.toUpperCase(),
    ...encoded,
    ...encoded.map((text) => text.replaceAll("+", "-").replaceAll("/", "_"))
  ]
  return [...new Set(forms)]
}

export interface Leak {
  /** The names of the secret and of the place. */
  readonly secret: string
  readonly place: string
  /** The text around the secret, without the secret itself. */
  readonly around: string
}

const context = 80

/**
 * The occurrences of any of `secrets` in `places`, in any form; both are given by name. A secret needs at least 8
 * characters.
 */
export const search = (
  secrets: Readonly<Record<string, string>>,
  places: Iterable<readonly [name: string, text: string]>
): ReadonlyArray<Leak> => {
  const needles = Object.entries(secrets).map(([name, secret]) => {
    if (secret.length < 8)
      throw new RangeError(`The secret ${name} is too short to be distinguished from other text.`)
    return [name, formsOf(secret)] as const
  })
  return Array.from(places).flatMap(([place, text]) =>
    needles.flatMap(([secret, forms]) =>
      forms.flatMap((form): ReadonlyArray<Leak> => {
        const at = text.indexOf(form)
        if (at < 0) return []
        const end = at + form.length
        const around = `${text.slice(Math.max(0, at - context), at)}[${secret}]${text.slice(end, end + context)}`
        return [{ secret, place, around }]
      })
    )
  )
}
