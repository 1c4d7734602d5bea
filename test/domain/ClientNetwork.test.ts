import { describe, expect, it } from "vitest"
import { networkOf } from "../../src/domain/ClientNetwork.ts"

describe("What counts as one client", () => {
  it("is an IPv4 address, however it is written", () => {
    expect(networkOf("192.0.2.1")).toBe("192.0.2.1")
    expect(networkOf("::ffff:192.0.2.1")).toBe("192.0.2.1")
    expect(networkOf("::FFFF:192.0.2.1")).toBe("192.0.2.1")
    expect(networkOf("192.0.2.2")).not.toBe(networkOf("192.0.2.1"))
  })

  it("is the first 64 bits of an IPv6 address, however it is written", () => {
    const network = "2001:db8:0:1::/64"
    for (const address of [
      "2001:db8:0:1::",
      "2001:db8:0:1::1",
      "2001:db8:0:1:ffff:ffff:ffff:ffff",
      "2001:0DB8:0000:0001:a:b:c:d",
      "2001:db8:0:1::192.0.2.1",
      "2001:db8:0:1:0:0:192.0.2.1"
    ])
      expect([address, networkOf(address)]).toEqual([address, network])
    expect(networkOf("2001:db8::1:0:0:0:1")).toBe("2001:db8:0:1::/64")
    expect(networkOf("2001:db8:0:2::1")).not.toBe(network)
    expect(networkOf("::1")).toBe("0:0:0:0::/64")
    expect(networkOf("fe80::1%eth0")).toBe("fe80:0:0:0::/64")
  })

  it("is one for all whose address is not known", () => {
    for (const address of [undefined, "", "localhost", "/run/spoke.sock", "1.2.3", "g::1"])
      expect(networkOf(address)).toBe("unknown")
  })
})
