/**
 * Where a request comes from. Behind a proxy the connection tells the proxy's address, and `x-forwarded-for` the client's: it
 * is believed only as far as those who wrote it are trusted (`SPOKE_TRUSTED_PROXIES`), because any client can send the header.
 */
import { IncomingMessage } from "node:http"
import { BlockList, isIP } from "node:net"
import type * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as Context from "effect/Context"
import * as Option from "effect/Option"
import { networkOf } from "../../domain/ClientNetwork.ts"

/** Addresses whose `x-forwarded-for` is believed. */
export class TrustedProxies extends Context.Reference<TrustedProxies>()("http/ClientAddress/TrustedProxies", {
  defaultValue: () => new BlockList()
}) {}

/** Most proxies that a request may have passed; earlier entries of the header are ignored. */
const maxHops = 16

/** Some proxies add the port: `192.0.2.1:4711`, `[2001:db8::1]:4711`. */
const withoutPort = (entry: string): string =>
  /^\[([^\]]*)\](?::\d+)?$/u.exec(entry)?.[1] ?? /^(\d+(?:\.\d+){3}):\d+$/u.exec(entry)?.[1] ?? entry

const isTrusted = (proxies: BlockList, address: string): boolean => {
  const version = isIP(address)
  return version !== 0 && proxies.check(address, version === 6 ? "ipv6" : "ipv4")
}

/** What a dual-stack listener writes before an IPv4 address. */
const plain = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/iu, "")

/** True for a connection that a trusted proxy has opened. */
export const isProxy = (proxies: BlockList, remoteAddress: string | undefined): boolean =>
  remoteAddress !== undefined && isTrusted(proxies, plain(remoteAddress))

/**
 * The address of the last one in `remoteAddress` and `forwardedFor`, read from right to left, who is no trusted proxy; of the
 * first proxy when all are.
 */
export const clientAddressOf = (
  proxies: BlockList,
  remoteAddress: string | undefined,
  forwardedFor: string | undefined
): string | undefined => {
  if (remoteAddress === undefined) return undefined
  let address = plain(remoteAddress)
  let end = forwardedFor?.length ?? 0
  for (let hops = 0; hops < maxHops && end > 0 && isTrusted(proxies, address); hops++) {
    const comma = forwardedFor?.lastIndexOf(",", end - 1) ?? -1
    const entry = withoutPort((forwardedFor ?? "").slice(comma + 1, end).trim())
    // What is no address was not written by a proxy.
    if (isIP(entry) === 0) break
    address = plain(entry)
    end = comma
  }
  return address
}

const forwarded = "x-forwarded-for"

const addresses = new WeakMap<IncomingMessage, string | undefined>()

/** The client's address of a request; looked for once. */
export const addressOf = (proxies: BlockList, request: IncomingMessage): string | undefined => {
  if (addresses.has(request)) return addresses.get(request)
  const given = request.headers[forwarded]
  const header = typeof given === "string" ? given : given?.join(",")
  const address = clientAddressOf(proxies, request.socket.remoteAddress, header)
  addresses.set(request, address)
  return address
}

/** What limits shared by address count a request for that a handler has. */
export const networkOfRequest = (
  proxies: BlockList,
  { remoteAddress, source }: HttpServerRequest.HttpServerRequest
): string =>
  source instanceof IncomingMessage
    ? ownerOf(proxies, source)
    : networkOf(Option.getOrUndefined(remoteAddress))

/** The owner that shared limits count the request for until its tenant is known. */
export const ownerOf = (proxies: BlockList, request: IncomingMessage): string =>
  networkOf(addressOf(proxies, request))
