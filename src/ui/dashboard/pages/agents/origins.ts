/** Parses websites from input: people paste whole addresses and omit the scheme. */
export interface Meant {
  readonly typed: string
  /** The stored form; null if a line is not a website. */
  readonly origin: string | null
  /** The scheme was left out. */
  readonly isGuess: boolean
}

/** Local hosts and IP addresses seldom use https. */
const isLocal = (host: string) =>
  /^(?:localhost|.*\.(?:localhost|local|test|internal|lan)|127(?:\.\d+){3}|10(?:\.\d+){3}|192\.168(?:\.\d+){2}|\[::1\])$/iu.test(
    host
  )

const originOf = (address: string): string | null => {
  if (!/^https?:\/\/[^/]/iu.test(address) || !URL.canParse(address)) return null
  // Chromium writes an asterisk as %2A.
  const { hostname, origin, password, username } = new URL(address)
  return username !== "" || password !== "" || /[*%]/u.test(hostname) ? null : origin
}

/** The lines as typed; empty for no input. */
export const meantBy = (typed: string): ReadonlyArray<Meant> =>
  typed
    .split(/[\s,;]+/u)
    .filter((text) => text !== "")
    .map((text) => {
      if (/^[a-z][a-z0-9+.-]*:\/\//iu.test(text))
        return { typed: text, origin: originOf(text), isGuess: false }
      const [host = ""] = text.split(/(?::\d+)?(?:[/?#]|$)/u)
      const origin = originOf(`${isLocal(host) ? "http" : "https"}://${text}`)
      return { typed: text, origin, isGuess: origin !== null }
    })

/** Each once. */
export const originsOf = (meant: ReadonlyArray<Meant>): ReadonlyArray<string> => [
  ...new Set(meant.flatMap(({ origin }) => origin ?? []))
]
