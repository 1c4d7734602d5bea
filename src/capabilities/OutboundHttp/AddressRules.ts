/**
 * Decides which addresses a request may go to: globally routed ones, and those that the operator allows
 * (`SPOKE_FETCH_ALLOW`). The ranges are those of the IANA special-purpose registries.
 */
import { isIPv4, isIPv6 } from "node:net"
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import ipaddr from "ipaddr.js"
import { urlOf } from "../../domain/Address.ts"

type Address = ipaddr.IPv4 | ipaddr.IPv6
type Range = readonly [cidr: string, meaning: string]

/** The first match is used. */
const specialV4: ReadonlyArray<Range> = [
  ["169.254.169.254/32", "a cloud metadata address"],
  ["169.254.170.0/24", "a cloud metadata address"],
  ["100.100.100.200/32", "a cloud metadata address"],
  ["192.0.0.192/32", "a cloud metadata address"],
  ["168.63.129.16/32", "a cloud metadata address"],
  ["0.0.0.0/8", "an unspecified address"],
  ["10.0.0.0/8", "a private address"],
  ["100.64.0.0/10", "a carrier-grade NAT address"],
  ["127.0.0.0/8", "a loopback address"],
  ["169.254.0.0/16", "a link-local address"],
  ["172.16.0.0/12", "a private address"],
  ["192.0.0.0/24", "a reserved address"],
  ["192.0.2.0/24", "a documentation address"],
  ["192.31.196.0/24", "a reserved address"],
  ["192.52.193.0/24", "a reserved address"],
  ["192.88.99.0/24", "a reserved address"],
  ["192.168.0.0/16", "a private address"],
  ["192.175.48.0/24", "a reserved address"],
  ["198.18.0.0/15", "a benchmarking address"],
  ["198.51.100.0/24", "a documentation address"],
  ["203.0.113.0/24", "a documentation address"],
  ["224.0.0.0/4", "a multicast address"],
  ["255.255.255.255/32", "a broadcast address"],
  ["240.0.0.0/4", "a reserved address"]
]

/** The first match is used. The rest of 2000::/3 is global unicast. */
const specialV6: ReadonlyArray<Range> = [
  ["fd00:ec2::/32", "a cloud metadata address"],
  ["fd20:ce::254/128", "a cloud metadata address"],
  ["fd00:c1::a9fe:a9fe/128", "a cloud metadata address"],
  ["::/128", "an unspecified address"],
  ["::1/128", "a loopback address"],
  ["::/96", "an address that hides an IPv4 address"],
  ["::ffff:0:0:0/96", "an address that hides an IPv4 address"],
  ["64:ff9b:1::/48", "an address that hides an IPv4 address"],
  ["2002::/16", "an address that hides an IPv4 address"],
  ["2001::/32", "an address that hides an IPv4 address"],
  ["100::/32", "a discard address"],
  ["2001::/23", "a reserved address"],
  ["2001:db8::/32", "a documentation address"],
  ["3fff::/20", "a documentation address"],
  ["2620:4f:8000::/48", "a reserved address"],
  ["fc00::/7", "a private address"],
  ["fe80::/10", "a link-local address"],
  ["fec0::/10", "a private address"],
  ["ff00::/8", "a multicast address"]
]

const parseRanges = (ranges: ReadonlyArray<Range>) =>
  ranges.map(([cidr, meaning]) => ({ range: ipaddr.parseCIDR(cidr), meaning }))
const rangesV4 = parseRanges(specialV4)
const rangesV6 = parseRanges(specialV6)
const dns64Prefix = ipaddr.parseCIDR("64:ff9b::/96")
const globalUnicast = ipaddr.parseCIDR("2000::/3")

const isWithin = (address: Address, [network, bits]: [Address, number]): boolean =>
  address.kind() === network.kind() && address.match(network, bits)

const embeddedIpv4 = (address: ipaddr.IPv6): Address => ipaddr.fromByteArray(address.toByteArray().slice(12))

/** ISATAP (RFC 5214): any prefix, then 0:5efe or 200:5efe, then an IPv4 address. */
const isIsatap = ({ parts }: ipaddr.IPv6): boolean =>
  (parts[4] === 0 || parts[4] === 0x200) && parts[5] === 0x5efe

const meaningOf = (address: Address): string | null => {
  if (address instanceof ipaddr.IPv4)
    return rangesV4.find(({ range }) => isWithin(address, range))?.meaning ?? null
  // The well-known prefix of DNS64 leads to the public IPv4 internet, so the embedded address decides.
  if (isWithin(address, dns64Prefix) || isIsatap(address)) return meaningOf(embeddedIpv4(address))
  const special = rangesV6.find(({ range }) => isWithin(address, range))
  if (special !== undefined) return special.meaning
  return isWithin(address, globalUnicast) ? null : "a reserved address"
}

/**
 * Strict: dotted decimals or RFC 4291 only. A mapped address becomes the IPv4 address that the kernel would connect to.
 */
const parse = (text: string): Address | null => {
  if (isIPv4(text)) return ipaddr.IPv4.parse(text)
  if (!isIPv6(text) || text.includes("%")) return null
  // ipaddr.js parses ::8.8.8.8 as ::ffff:8.8.8.8. The hexadecimal groups of a URL are unambiguous.
  const address = ipaddr.IPv6.parse(new URL(`http://[${text}]/`).hostname.slice(1, -1))
  return address.isIPv4MappedAddress() ? address.toIPv4Address() : address
}

/** Why an address is refused, such as `a private address`, or null when it is routed globally. */
export const refusal = (address: string): string | null => {
  const parsed = parse(address)
  return parsed === null ? "not an address on the internet" : meaningOf(parsed)
}

/** The canonical form of an address; null for anything else. */
export const canonical = (address: string): string | null => parse(address)?.toString() ?? null

type AllowEntry =
  | { readonly _tag: "Host"; readonly host: string; readonly port: number | null }
  | { readonly _tag: "Range"; readonly range: [Address, number]; readonly port: number | null }

/** Allowed destinations that are not routed globally. A host stands for all its addresses. */
export type AllowList = ReadonlyArray<AllowEntry>

/** Names each entry that is not a host, a `host:port`, an address or a CIDR. */
export class InvalidAllowList extends Schema.TaggedError<InvalidAllowList>()("InvalidAllowList", {
  message: Schema.String
}) {}

/**
 * The normalized form in which hosts are compared: lower case, ASCII, IPv4 in dotted decimals, no brackets, no trailing
 * dot.
 */
export const bareHost = (hostname: string): string => hostname.replace(/^\[|\]$|\.$/g, "")

const wholeRange = (address: Address): [Address, number] => [address, address.kind() === "ipv4" ? 32 : 128]

const parseHost = (text: string): string | null => {
  // Parsing as a URL normalizes the host like the URLs that it is compared with.
  const url = urlOf(`http://${text}/`)
  if (!/^[^\s/?#@\\:*]+$|^\[[\da-f:.]+\]$/i.test(text) || url === null) return null
  return bareHost(url.hostname) || null
}

const parseEntry = (text: string): AllowEntry | null => {
  if (text.includes("/")) {
    const found = /^(.+)\/(\d{1,3})$/.exec(text)
    const network = parse(found?.[1] ?? "")
    const bits = Number(found?.[2])
    if (network === null || bits > wholeRange(network)[1]) return null
    return { _tag: "Range", range: [network, bits], port: null }
  }
  const portless = isIPv6(text) ? null : /^(.+):(\d{1,5})$/.exec(text)
  const port = portless === null ? null : Number(portless[2])
  const host = parseHost(isIPv6(text) ? `[${text}]` : (portless?.[1] ?? text))
  if (host === null || (port !== null && (port < 1 || port > 65_535))) return null
  const address = parse(host)
  return address === null ? { _tag: "Host", host, port } : { _tag: "Range", range: wholeRange(address), port }
}

/**
 * Parses `SPOKE_FETCH_ALLOW`: hosts, `host:port`, addresses, `address:port` (then IPv6 in brackets) and CIDRs,
 * separated by commas. Empty entries are skipped.
 */
export const parseAllowList = (text: string): Either.Either<AllowList, InvalidAllowList> => {
  const entries = text
    .split(",")
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "")
  const parsed = entries.map(parseEntry)
  const invalid = entries.filter((_, at) => parsed[at] === null)
  return invalid.length === 0
    ? Either.right(parsed.filter((entry) => entry !== null))
    : Either.left(
        new InvalidAllowList({
          message: `Expected hosts, host:port, addresses or CIDRs, not: ${invalid.map((entry) => JSON.stringify(entry)).join(", ")}`
        })
      )
}

/** The target of a connection: the host as normalized by {@link bareHost}, and one of its addresses. */
export interface Endpoint {
  readonly host: string
  readonly port: number
  readonly address: string
}

/** True when an entry of the list covers the endpoint. */
export const isAllowed = (allow: AllowList, { host, port, address }: Endpoint): boolean => {
  const parsed = parse(address)
  return allow.some((entry) => {
    if (entry.port !== null && entry.port !== port) return false
    if (entry._tag === "Host") return entry.host === host
    return parsed !== null && isWithin(parsed, entry.range)
  })
}
