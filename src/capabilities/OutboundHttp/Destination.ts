/** Resolves a URL once to the addresses that may be connected to, and checks every one. */
import { lookup } from "node:dns"
import { isIP } from "node:net"
import * as Effect from "effect/Effect"
import { urlOf } from "../../domain/Address.ts"
import { withSharedPermit } from "../../concurrency/CurrentOwner.ts"
import { FairLimiter } from "../../concurrency/FairLimiter.ts"
import { OutboundHttpError } from "../OutboundHttp.ts"
import { type AllowList, bareHost, canonical, isAllowed, refusal } from "./AddressRules.ts"

/** A URL with its checked addresses. Its requests may connect only to these. */
export interface Destination {
  readonly url: URL
  /** Not empty, in canonical form. */
  readonly addresses: ReadonlyArray<string>
}

/** All addresses of a name, resolved once per request. Fails with reason `Unresolved`. */
export type Resolver = (hostname: string) => Effect.Effect<ReadonlyArray<string>, OutboundHttpError>

/**
 * A look-up occupies one of libuv's four threads, and files need some of them too. A name server that does not answer
 * blocks a thread for long, so an owner may use one.
 */
const lookupLimits = { permits: 2, maxPermitsPerOwner: 1, maxWaiting: 4_096 } as const

const notFoundCodes: ReadonlySet<string | undefined> = new Set(["ENOTFOUND", "ENODATA", "EAI_NONAME"])

const tooManyLookups = (hostname: string) =>
  new OutboundHttpError({
    reason: "Unresolved",
    message: `The host ${hostname} was not looked up: too many others wait. Try again later.`
  })

const lookUp = (hostname: string) =>
  Effect.async<ReadonlyArray<string>, OutboundHttpError>((resume) => {
    lookup(hostname, { all: true }, (error, found) => {
      if (error === null || error === undefined)
        return resume(Effect.succeed(found.map(({ address }) => address)))
      const message = notFoundCodes.has(error.code)
        ? `The host ${hostname} does not exist. Check the address.`
        : `The host ${hostname} could not be looked up just now. Try again later.`
      resume(new OutboundHttpError({ reason: "Unresolved", message }))
    })
  })

/** The operating system's resolver: hosts file, search domains and DNS. */
export const makeSystemResolver: Effect.Effect<Resolver> = Effect.sync(() => {
  const limiter = new FairLimiter({ name: "name-lookups", ...lookupLimits })
  return (hostname) =>
    // A running look-up cannot be stopped. Its caller is interrupted at once, but the permit is released only when it
    // ends.
    Effect.uninterruptible(lookUp(hostname)).pipe(
      withSharedPermit(limiter, () => tooManyLookups(hostname)),
      Effect.disconnect
    )
})

const invalid = (message: string) => new OutboundHttpError({ reason: "InvalidUrl", message })

/**
 * An absolute http or https URL without credentials, fragment or trailing dot. Otherwise fails with reason
 * `InvalidUrl`.
 */
export const parseUrl = (text: string, base?: URL): Effect.Effect<URL, OutboundHttpError> =>
  Effect.suspend(() => {
    const url = urlOf(text, base?.href)
    if (url === null) return invalid("The address is not a URL. Give one like https://example.com/page.")
    if (url.protocol !== "http:" && url.protocol !== "https:")
      return invalid("Only http and https addresses can be fetched.")
    if (url.username !== "" || url.password !== "")
      return invalid(
        `Take the user name and password out of the address of ${url.host}; send them as a header.`
      )
    const hostname = url.hostname.replace(/\.$/, "")
    if (hostname === "" || hostname.endsWith(".")) return invalid("The address names no host.")
    url.hostname = hostname
    url.hash = ""
    return Effect.succeed(url)
  })

/** The port of a URL, with the default of its scheme. */
const portOf = (url: URL): number =>
  url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port)

const refused = (url: URL, subject: string, meaning: string) =>
  new OutboundHttpError({
    reason: "Refused",
    message: `Refused to fetch ${url.origin}: ${subject} ${meaning}. Add it to SPOKE_FETCH_ALLOW to allow it.`
  })

/**
 * Resolves the URL's host and checks each of its addresses. One refused address refuses the request, because a name
 * with public and private addresses is an attack or a mistake.
 */
export const resolve = (
  resolver: Resolver,
  allow: AllowList,
  url: URL
): Effect.Effect<Destination, OutboundHttpError> =>
  Effect.gen(function* () {
    const host = bareHost(url.hostname)
    const isAddress = isIP(host) !== 0
    const found = isAddress ? [host] : yield* resolver(host)
    if (found.length === 0)
      return yield* new OutboundHttpError({
        reason: "Unresolved",
        message: `The host ${host} has no address.`
      })
    for (const address of found) {
      const meaning = refusal(address)
      if (meaning === null || isAllowed(allow, { host, port: portOf(url), address })) continue
      // The private address of a name must not be disclosed to the caller, so it is only logged.
      yield* Effect.logInfo("An outbound request was refused").pipe(Effect.annotateLogs({ host, address }))
      return yield* isAddress
        ? refused(url, `${host} is`, meaning)
        : refused(url, `${host} leads to`, meaning)
    }
    return { url, addresses: found.flatMap((address) => canonical(address) ?? []) }
  })
