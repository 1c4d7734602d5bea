import { BlockList } from "node:net"
import { describe, expect, it } from "vitest"
import { clientAddressOf, isProxy } from "../../../src/http/server/ClientAddress.ts"

const proxies = new BlockList()
proxies.addSubnet("10.0.0.0", 8, "ipv4")
proxies.addAddress("192.0.2.7", "ipv4")
proxies.addSubnet("fd00::", 8, "ipv6")

const nobody = new BlockList()

describe("The address of a client", () => {
  it("is that of its connection if no proxy is trusted, regardless of the header", () => {
    expect(clientAddressOf(nobody, "10.0.0.1", "203.0.113.9")).toBe("10.0.0.1")
    expect(clientAddressOf(nobody, "::ffff:10.0.0.1", "203.0.113.9")).toBe("10.0.0.1")
    expect(clientAddressOf(nobody, "2001:db8::1", undefined)).toBe("2001:db8::1")
    expect(clientAddressOf(nobody, undefined, "203.0.113.9")).toBe(undefined)
  })

  it("is that of its connection if the header comes from an untrusted client", () => {
    expect(clientAddressOf(proxies, "203.0.113.5", "198.51.100.1")).toBe("203.0.113.5")
  })

  it("is the last address in the header that is not a trusted proxy: earlier ones were sent by the client", () => {
    expect(clientAddressOf(proxies, "10.0.0.1", "203.0.113.9")).toBe("203.0.113.9")
    expect(clientAddressOf(proxies, "10.0.0.1", "198.51.100.1, 203.0.113.9")).toBe("203.0.113.9")
    expect(clientAddressOf(proxies, "10.0.0.1", "198.51.100.1, 203.0.113.9, 192.0.2.7,10.2.3.4")).toBe(
      "203.0.113.9"
    )
    expect(clientAddressOf(proxies, "fd00::1", "2001:db8::5")).toBe("2001:db8::5")
    expect(clientAddressOf(proxies, "::ffff:10.0.0.1", "::ffff:203.0.113.9")).toBe("203.0.113.9")
  })

  it("is read with and without a port", () => {
    expect(clientAddressOf(proxies, "10.0.0.1", "203.0.113.9:4711")).toBe("203.0.113.9")
    expect(clientAddressOf(proxies, "10.0.0.1", "[2001:db8::5]:4711")).toBe("2001:db8::5")
    expect(clientAddressOf(proxies, "10.0.0.1", "[2001:db8::5]")).toBe("2001:db8::5")
  })

  it("is the proxy's if the header has no valid address", () => {
    expect(clientAddressOf(proxies, "10.0.0.1", undefined)).toBe("10.0.0.1")
    expect(clientAddressOf(proxies, "10.0.0.1", "")).toBe("10.0.0.1")
    expect(clientAddressOf(proxies, "10.0.0.1", "203.0.113.9, unknown")).toBe("10.0.0.1")
    expect(clientAddressOf(proxies, "10.0.0.1", "203.0.113.9, 10.0.0.2, <script>, 10.0.0.3")).toBe("10.0.0.3")
    expect(clientAddressOf(proxies, "10.0.0.1", "10.0.0.3, 10.0.0.2")).toBe("10.0.0.3")
  })

  it("reads only a limited part of a long header", () => {
    const long = `203.0.113.9,${Array.from({ length: 1_000 }, () => "10.0.0.2").join()}`
    expect(clientAddressOf(proxies, "10.0.0.1", long)).toBe("10.0.0.2")
  })

  it("distinguishes connections of proxies from others", () => {
    expect(isProxy(proxies, "10.1.1.1")).toBe(true)
    expect(isProxy(proxies, "::ffff:10.1.1.1")).toBe(true)
    expect(isProxy(proxies, "203.0.113.9")).toBe(false)
    expect(isProxy(proxies, undefined)).toBe(false)
  })
})
