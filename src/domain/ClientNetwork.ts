/**
 * Identifies a client by its network address, where nothing else is known. The holder of an IPv6 address usually has
 * its whole /64 network, so the network counts as one client. An IPv4 address is one client.
 */

/** The groups of one side of `::`. */
const groupsOf = (side: string): ReadonlyArray<string> => (side === "" ? [] : side.split(":"))

/** The IPv4 address, which may be written as an IPv4-mapped IPv6 address; null for any other. */
const ipv4Of = (address: string): string | null =>
  /^(?:::ffff:)?(\d{1,3}(?:\.\d{1,3}){3})$/iu.exec(address)?.[1] ?? null

/** The network of `address`, which is written as by Node's sockets; "unknown" for every invalid address. */
export const networkOf = (address: string | undefined): string => {
  if (address === undefined) return "unknown"
  const ipv4 = ipv4Of(address)
  if (ipv4 !== null) return ipv4
  const [text = ""] = address.toLowerCase().split("%", 1)
  const [head = "", tail] = text.split("::", 2)
  if (!/^[0-9a-f:.]+$/u.test(text) || !text.includes(":")) return "unknown"
  const before = groupsOf(head)
  const after = tail === undefined ? [] : groupsOf(tail)
  // An IPv4 address at the end takes the place of two groups.
  const length = before.length + after.length + (text.includes(".") ? 1 : 0)
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - length)
  const groups = [...before, ...Array.from({ length: zeros }, () => "0"), ...after]
  const prefix = groups.slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16))
  return `${prefix.join(":")}::/64`
}
