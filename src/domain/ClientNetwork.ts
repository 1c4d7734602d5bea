/**
 * What counts as one client where an address is all that is known of it. The holder of an IPv6 address has the 64 bits behind
 * its network's prefix too, so a network counts as one; an IPv4 address stands for itself.
 */

/** The groups of one side of `::`. */
const groupsOf = (side: string): ReadonlyArray<string> => (side === "" ? [] : side.split(":"))

/** An IPv4 address, also one that is written as an IPv6 address; null for any other. */
const ipv4Of = (address: string): string | null =>
  /^(?:::ffff:)?(\d{1,3}(?:\.\d{1,3}){3})$/iu.exec(address)?.[1] ?? null

/** `address` as Node's sockets write it. Anything that is no address counts as one and the same client. */
export const networkOf = (address: string | undefined): string => {
  if (address === undefined) return "unknown"
  const ipv4 = ipv4Of(address)
  if (ipv4 !== null) return ipv4
  const [text = ""] = address.toLowerCase().split("%", 1)
  const [head = "", tail] = text.split("::", 2)
  if (!/^[0-9a-f:.]+$/u.test(text) || !text.includes(":")) return "unknown"
  const before = groupsOf(head)
  const after = tail === undefined ? [] : groupsOf(tail)
  // An IPv4 address at the end takes the room of two groups.
  const length = before.length + after.length + (text.includes(".") ? 1 : 0)
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - length)
  const groups = [...before, ...Array.from({ length: zeros }, () => "0"), ...after]
  const prefix = groups.slice(0, 4).map((group) => Number.parseInt(group, 16).toString(16))
  return `${prefix.join(":")}::/64`
}
