/** Parses addresses. */
import * as Option from "effect/Option"

/**
 * Parses `text` as a URL, relative to `base` if given; null when it is not a URL. `URL.canParse` cannot be used: in
 * Node 20 its compiled fast path rejects every address with a letter beyond ASCII.
 */
export const urlOf: (text: string, base?: string) => URL | null = (text, base) =>
  Option.getOrNull(Option.liftThrowable(() => new URL(text, base))())

/** Schemes of addresses whose content a browser runs in the page that links to them. */
const executedSchemes: ReadonlySet<string> = new Set(["javascript:", "data:", "vbscript:"])

/** The address that a page may link to: `unsafe:` is put before one that would run a script. */
export const inertAddress = (address: string): string =>
  executedSchemes.has(urlOf(address)?.protocol ?? "") ? `unsafe:${address}` : address

/** Whether a URL's host name is this machine. */
export const isLocalHost = (host: string): boolean => /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/.test(host)

/** The address of a server, without a slash at its end and without `/v1`, which may have been copied with it. */
export const serverAddress = (url: string): string => {
  let end = url.length
  while (url.charAt(end - 1) === "/") end--
  const address = url.slice(0, end)
  return address.endsWith("/v1") ? address.slice(0, -"/v1".length) : address
}
