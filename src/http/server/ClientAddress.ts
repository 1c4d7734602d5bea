/**
 * The client's address of a request. Behind a proxy the connection has the proxy's address, and `x-forwarded-for` the
 * client's. Any client can send that header, so only entries by trusted proxies count (`SPOKE_TRUSTED_PROXIES`).
 */
import { IncomingMessage } from "node:http"
import { BlockList, isIP } from "node:net"
import type * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as Context from "effect/Context"
import * as Option from "effect/Option"
import { networkOf } from "../../domain/ClientNetwork.ts"

/** Addresses whose `x-forwarded-for` is trusted. */
export class TrustedProxies extends Context.Reference<TrustedProxies>()("http/ClientAddress/TrustedProxies", {
  defaultValue: () => new BlockList()
}) {}

/** Maximum proxies that a request may have passed; earlier entries of the header are ignored. */
const maxHops = 16

/** Some proxies add the port: `192.0.2.1:4711`, `[2001:db8::1]:4711`. */
const withoutPort = (entry: string): string =>
  /^\[([^\]]*)\](?::\d+)?$/u.exec(entry)?.[1] ?? /^(\d+(?:\.\d+){3}):\d+$/u.exec(entry)?.[1] ?? entry

const isTrusted = (proxies: BlockList, address: string): boolean => {
  const version = isIP(address)
  return version !== 0 && proxies.check(address, version === 6 ? "ipv6" : "ipv4")
}

/** Removes the prefix of IPv4 addresses on a dual-stack listener. */
const withoutIpv6Prefix = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/iu, "")

/** True for a connection from a trusted proxy. */
export const isProxy = (proxies: BlockList, remoteAddress: string | undefined): boolean =>
  remoteAddress !== undefined && isTrusted(proxies, withoutIpv6Prefix(remoteAddress))

/**
 * Reads `remoteAddress`, then `forwardedFor` from right to left, and returns the first address that is not a trusted
 * proxy; if all are, the last one read. If any proxies are trusted, a connection without a known address counts as a
 * trusted one.
 */
export const clientAddressOf = (
  proxies: BlockList,
  remoteAddress: string | undefined,
  forwardedFor: string | undefined
): string | undefined => {
  let address = remoteAddress === undefined ? undefined : withoutIpv6Prefix(remoteAddress)
  let isForwarded = address === undefined ? proxies.rules.length > 0 : isTrusted(proxies, address)
  let end = forwardedFor?.length ?? 0
  for (let hops = 0; hops < maxHops && end > 0 && isForwarded; hops++) {
    const comma = forwardedFor?.lastIndexOf(",", end - 1) ?? -1
    const entry = withoutPort((forwardedFor ?? "").slice(comma + 1, end).trim())
    // Proxies add only addresses.
    if (isIP(entry) === 0) break
    address = withoutIpv6Prefix(entry)
    isForwarded = isTrusted(proxies, address)
    end = comma
  }
  return address
}

export const forwardedHeader = "x-forwarded-for"

const addresses = new WeakMap<IncomingMessage, string | undefined>()

/** The client's address of a request, cached. */
export const addressOf = (proxies: BlockList, request: IncomingMessage): string | undefined => {
  if (addresses.has(request)) return addresses.get(request)
  const value = request.headers[forwardedHeader]
  const header = typeof value === "string" ? value : value?.join(",")
  const { remoteAddress } = request.socket
  // A connection that has ended has none.
  const address = remoteAddress === undefined ? undefined : clientAddressOf(proxies, remoteAddress, header)
  addresses.set(request, address)
  return address
}

/** The network that address limits count a handler's request for. */
export const networkOfRequest = (
  proxies: BlockList,
  { remoteAddress, source }: HttpServerRequest.HttpServerRequest
): string =>
  source instanceof IncomingMessage
    ? ownerOf(proxies, source)
    : networkOf(Option.getOrUndefined(remoteAddress))

/** The owner of the request in shared limits, until its tenant is known. */
export const ownerOf = (proxies: BlockList, request: IncomingMessage): string =>
  networkOf(addressOf(proxies, request))
