import { describe, expect, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as FastCheck from "effect/FastCheck"
import ipaddr from "ipaddr.js"
import {
  type AllowList,
  isAllowed,
  parseAllowList,
  refusal
} from "../../src/capabilities/OutboundHttp/AddressRules.ts"

const allowing = (text: string): AllowList => Either.getOrThrow(parseAllowList(text))

const refused = [
  ["0.0.0.0", "an unspecified address"],
  ["0.1.2.3", "an unspecified address"],
  ["10.0.0.0", "a private address"],
  ["10.255.255.255", "a private address"],
  ["100.64.0.0", "a carrier-grade NAT address"],
  ["100.127.255.255", "a carrier-grade NAT address"],
  ["100.100.100.200", "a cloud metadata address"],
  ["127.0.0.1", "a loopback address"],
  ["127.255.255.254", "a loopback address"],
  ["168.63.129.16", "a cloud metadata address"],
  ["169.254.0.1", "a link-local address"],
  ["169.254.169.254", "a cloud metadata address"],
  ["169.254.170.2", "a cloud metadata address"],
  ["172.16.0.0", "a private address"],
  ["172.31.255.255", "a private address"],
  ["192.0.0.1", "a reserved address"],
  ["192.0.0.192", "a cloud metadata address"],
  ["192.0.2.1", "a documentation address"],
  ["192.88.99.1", "a reserved address"],
  ["192.168.0.1", "a private address"],
  ["198.18.0.0", "a benchmarking address"],
  ["198.19.255.255", "a benchmarking address"],
  ["198.51.100.7", "a documentation address"],
  ["203.0.113.255", "a documentation address"],
  ["224.0.0.1", "a multicast address"],
  ["239.255.255.255", "a multicast address"],
  ["240.0.0.1", "a reserved address"],
  ["255.255.255.255", "a broadcast address"],
  ["::", "an unspecified address"],
  ["::1", "a loopback address"],
  ["0:0:0:0:0:0:0:1", "a loopback address"],
  ["::127.0.0.1", "an address that hides an IPv4 address"],
  ["::8.8.8.8", "an address that hides an IPv4 address"],
  ["::ffff:127.0.0.1", "a loopback address"],
  ["::ffff:7f00:1", "a loopback address"],
  ["::ffff:0:127.0.0.1", "an address that hides an IPv4 address"],
  ["::ffff:0:8.8.8.8", "an address that hides an IPv4 address"],
  ["64:ff9b::10.0.0.1", "a private address"],
  ["64:ff9b::a9fe:a9fe", "a cloud metadata address"],
  ["64:ff9b:1::8.8.8.8", "an address that hides an IPv4 address"],
  ["64:ff9b:1:ffff:ffff:ffff:ffff:ffff", "an address that hides an IPv4 address"],
  ["64:ff9b:0:1::8.8.8.8", "a reserved address"],
  ["100::1", "a discard address"],
  ["100:0:0:1::1", "a discard address"],
  ["2001::1", "an address that hides an IPv4 address"],
  ["2001:2::1", "a reserved address"],
  ["2001:10::1", "a reserved address"],
  ["2001:20::1", "a reserved address"],
  ["2001:db8::1", "a documentation address"],
  ["2002:7f00:1::", "an address that hides an IPv4 address"],
  ["2002:808:808::1", "an address that hides an IPv4 address"],
  ["2620:4f:8000::1", "a reserved address"],
  ["2a00::5efe:192.168.0.1", "a private address"],
  ["2a00::200:5efe:10.0.0.1", "a private address"],
  ["3fff::1", "a documentation address"],
  ["4000::1", "a reserved address"],
  ["5f00::1", "a reserved address"],
  ["fc00::1", "a private address"],
  ["fd00:ec2::254", "a cloud metadata address"],
  ["fd20:ce::254", "a cloud metadata address"],
  ["fdff::1", "a private address"],
  ["fe80::1", "a link-local address"],
  ["fe80::1%eth0", "not an address on the internet"],
  ["2a00::1%1", "not an address on the internet"],
  ["fec0::1", "a private address"],
  ["ff02::1", "a multicast address"],
  ["ffff::1", "a multicast address"],
  ["", "not an address on the internet"],
  ["localhost", "not an address on the internet"],
  ["0177.0.0.1", "not an address on the internet"],
  ["127.1", "not an address on the internet"],
  ["2130706433", "not an address on the internet"]
] as const

const routed = [
  "1.1.1.1",
  "8.8.8.8",
  "9.255.255.255",
  "11.0.0.0",
  "100.63.255.255",
  "100.128.0.0",
  "126.255.255.255",
  "128.0.0.1",
  "169.253.255.255",
  "169.255.0.0",
  "172.15.255.255",
  "172.32.0.0",
  "192.0.1.0",
  "192.167.255.255",
  "192.169.0.0",
  "198.17.255.255",
  "198.20.0.0",
  "223.255.255.255",
  "2001:200::1",
  "2606:4700:4700::1111",
  "2a00:1450:4001:81b::200e",
  "64:ff9b::8.8.8.8",
  "::ffff:8.8.8.8"
]

describe("refusal", () => {
  it.each(refused)("refuses %s as %s", (address, meaning) => {
    expect(refusal(address)).toBe(meaning)
  })

  it.each(routed)("lets %s through", (address) => {
    expect(refusal(address)).toBeNull()
  })

  const ranges: ReadonlyArray<readonly [base: string, bits: number]> = [
    ["0.0.0.0", 8],
    ["10.0.0.0", 8],
    ["100.64.0.0", 10],
    ["127.0.0.0", 8],
    ["169.254.0.0", 16],
    ["172.16.0.0", 12],
    ["192.0.0.0", 24],
    ["192.0.2.0", 24],
    ["192.168.0.0", 16],
    ["198.18.0.0", 15],
    ["198.51.100.0", 24],
    ["203.0.113.0", 24],
    ["224.0.0.0", 3]
  ]

  const number = (address: string): number =>
    address.split(".").reduce((sum, part) => sum * 256 + Number(part), 0)
  const dotted = (value: number): string =>
    [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join(".")

  const inside = FastCheck.constantFrom(...ranges).chain(([base, bits]) =>
    FastCheck.nat({ max: 2 ** (32 - bits) - 1 }).map((offset) => dotted(number(base) + offset))
  )

  const hex = (value: number): string => value.toString(16)

  const embeddings = (address: string): ReadonlyArray<string> => {
    const [a = 0, b = 0, c = 0, d = 0] = address.split(".").map(Number)
    const high = hex(a * 256 + b)
    const low = hex(c * 256 + d)
    const inverted = `${hex(65_535 - (a * 256 + b))}:${hex(65_535 - (c * 256 + d))}`
    return [
      `::ffff:${address}`,
      `::ffff:${high}:${low}`,
      `0:0:0:0:0:FFFF:${high}:${low}`,
      `::${address}`,
      `::ffff:0:${high}:${low}`,
      `64:ff9b::${address}`,
      `64:ff9b::${high}:${low}`,
      `64:ff9b:1::${high}:${low}`,
      `2002:${high}:${low}::1`,
      `2001::${inverted}`,
      `2001:0:${high}:${low}::1`,
      `2a00:1450::5efe:${high}:${low}`,
      `2a00:1450::200:5efe:${high}:${low}`
    ]
  }

  const spellings = (address: string): ReadonlyArray<string> => {
    const [a = 0, b = 0, c = 0, d = 0] = address.split(".").map(Number)
    const value = number(address)
    return [
      address,
      String(value),
      `0x${hex(value)}`,
      `0${value.toString(8)}`,
      [a, b, c, d].map((part) => `0${part.toString(8)}`).join("."),
      [a, b, c, d].map((part) => `0x${hex(part)}`).join("."),
      `${a}.${b}.${c * 256 + d}`,
      `${a}.${(b * 256 + c) * 256 + d}`,
      `${address}.`,
      [...address].map((char) => `%${hex(char.charCodeAt(0))}`).join(""),
      [...address].map((char) => (char === "." ? "。" : String.fromCodePoint(0xff10 + Number(char)))).join("")
    ]
  }

  it("refuses every IPv4 address of a special range in each IPv6 form that hides it", () => {
    FastCheck.assert(
      FastCheck.property(inside, (address) => {
        for (const form of [address, ...embeddings(address)])
          expect([form, refusal(form)]).not.toContain(null)
      }),
      { numRuns: 500 }
    )
  })

  it("sees through every spelling of an IPv4 address that a URL may have", () => {
    FastCheck.assert(
      FastCheck.property(inside, (address) => {
        for (const form of spellings(address)) {
          const { hostname } = new URL(`http://${form}/`)
          expect([form, refusal(hostname)]).not.toContain(null)
        }
      }),
      { numRuns: 500 }
    )
  })

  it("lets no IPv6 address through that is outside 2000::/3, but for the translated public ones", () => {
    FastCheck.assert(
      FastCheck.property(
        FastCheck.array(FastCheck.integer({ min: 0, max: 255 }), { minLength: 16, maxLength: 16 }),
        (bytes) => {
          const first = bytes[0] ?? 0
          FastCheck.pre(first >> 5 !== 1)
          expect(refusal(ipaddr.fromByteArray(bytes).toString())).not.toBeNull()
        }
      ),
      { numRuns: 500 }
    )
  })
})

describe("SPOKE_FETCH_ALLOW", () => {
  const endpoint = (host: string, port: number, address = host) => ({ host, port, address })

  it("allows a host on every port, whatever address it has", () => {
    const allow = allowing("Intranet.Example.")
    expect(isAllowed(allow, endpoint("intranet.example", 80, "10.0.0.5"))).toBe(true)
    expect(isAllowed(allow, endpoint("intranet.example", 9_000, "fd00::5"))).toBe(true)
    expect(isAllowed(allow, endpoint("www.intranet.example", 80, "10.0.0.5"))).toBe(false)
    expect(isAllowed(allow, endpoint("other.example", 80, "10.0.0.5"))).toBe(false)
  })

  it("allows a host:port on that port alone, port 80 too", () => {
    const allow = allowing("intranet.example:8443, wiki.example:80")
    expect(isAllowed(allow, endpoint("intranet.example", 8_443, "10.0.0.5"))).toBe(true)
    expect(isAllowed(allow, endpoint("intranet.example", 443, "10.0.0.5"))).toBe(false)
    expect(isAllowed(allow, endpoint("wiki.example", 80, "10.0.0.5"))).toBe(true)
    expect(isAllowed(allow, endpoint("wiki.example", 443, "10.0.0.5"))).toBe(false)
  })

  it("allows an address under whatever name it is reached", () => {
    const allow = allowing("10.0.0.5,[::1]:8080,fd00::7")
    expect(isAllowed(allow, endpoint("intranet.example", 80, "10.0.0.5"))).toBe(true)
    expect(isAllowed(allow, endpoint("10.0.0.5", 80))).toBe(true)
    expect(isAllowed(allow, endpoint("::ffff:10.0.0.5", 80))).toBe(true)
    expect(isAllowed(allow, endpoint("10.0.0.6", 80))).toBe(false)
    expect(isAllowed(allow, endpoint("::1", 8_080))).toBe(true)
    expect(isAllowed(allow, endpoint("::1", 80))).toBe(false)
    expect(isAllowed(allow, endpoint("fd00:0:0::7", 80))).toBe(true)
  })

  it("allows the addresses of a CIDR and none beside it", () => {
    const allow = allowing("10.1.0.0/16 , fd00:1::/32")
    expect(isAllowed(allow, endpoint("10.1.255.255", 80))).toBe(true)
    expect(isAllowed(allow, endpoint("10.2.0.0", 80))).toBe(false)
    expect(isAllowed(allow, endpoint("fd00:1:2::3", 80))).toBe(true)
    expect(isAllowed(allow, endpoint("fd00:2::3", 80))).toBe(false)
    expect(isAllowed(allow, endpoint("64:ff9b::10.1.0.1", 80))).toBe(false)
  })

  it("is empty when nothing is given", () => {
    expect(allowing("")).toEqual([])
    expect(allowing(" , ,")).toEqual([])
  })

  it.each([
    "http://intranet.example",
    "intranet.example/path",
    "user@intranet.example",
    "intranet.example:0",
    "intranet.example:65536",
    "intranet.example:",
    "10.0.0.0/33",
    "fd00::/129",
    "10.0.0.0/8:80",
    "intranet.example/8",
    "two words",
    "[::1",
    "[nonsense]",
    "fe80::1%eth0",
    "*.example",
    ":80"
  ])("refuses the entry %s by name", (entry) => {
    const parsed = parseAllowList(`good.example,${entry},10.0.0.0/8`)
    expect(Either.isLeft(parsed)).toBe(true)
    if (Either.isLeft(parsed)) {
      expect(parsed.left.message).toContain(JSON.stringify(entry))
      expect(parsed.left.message).not.toContain("good.example")
    }
  })
})
