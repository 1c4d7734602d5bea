/** Parses origins of websites. People paste whole addresses, and omit the scheme. */
export interface ParsedOrigin {
  readonly typed: string
  /** The stored form; null if the entry is not a website. */
  readonly origin: string | null
  /** The scheme was left out. */
  readonly isSchemeGuessed: boolean
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

/** Every entry of the input, which are separated by white space, commas or semicolons. */
export const parseOrigins = (typed: string): ReadonlyArray<ParsedOrigin> =>
  typed
    .split(/[\s,;]+/u)
    .filter((text) => text !== "")
    .map((text) => {
      if (/^[a-z][a-z0-9+.-]*:\/\//iu.test(text))
        return { typed: text, origin: originOf(text), isSchemeGuessed: false }
      const [host = ""] = text.split(/(?::\d+)?(?:[/?#]|$)/u)
      const origin = originOf(`${isLocal(host) ? "http" : "https"}://${text}`)
      return { typed: text, origin, isSchemeGuessed: origin !== null }
    })

/** The origins of the valid entries, without duplicates. */
export const validOrigins = (parsed: ReadonlyArray<ParsedOrigin>): ReadonlyArray<string> => [
  ...new Set(parsed.flatMap(({ origin }) => origin ?? []))
]
