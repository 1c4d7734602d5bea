/** Ports for servers that cannot listen on port 0. */
import { randomInt } from "node:crypto"
import { createServer } from "node:net"

/** Below the ports that systems give to outgoing connections: one of those could be taken before the server listens. */
const [minPort, maxPort] = [12_000, 32_000]

const isFree = (port: number) =>
  new Promise<boolean>((resolve) => {
    const probe = createServer()
    probe.once("error", () => resolve(false))
    probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(true)))
  })

/** A port at which, and at `distance` above which, nothing listens. */
export const freePort = async (distance = 0): Promise<number> => {
  const port = randomInt(minPort, maxPort - distance)
  const isUsable = (await isFree(port)) && (distance === 0 || (await isFree(port + distance)))
  return isUsable ? port : freePort(distance)
}
