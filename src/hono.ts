/** `import { spoke } from "spoke/hono"`: the API of an instance in this process as a Hono handler. */
import { IncomingMessage } from "node:http"
import { type Mounted, mountedInstance } from "./app/mount/MountedInstance.ts"

export type { Mounted } from "./app/mount/MountedInstance.ts"

interface HonoContext {
  readonly req: { readonly raw: Request }
  readonly env?: unknown
}

/** The address of the connection, which `@hono/node-server` tells; none in other servers. */
const addressOf = ({ env }: HonoContext): string | undefined =>
  typeof env === "object" && env !== null && "incoming" in env && env.incoming instanceof IncomingMessage
    ? env.incoming.socket.remoteAddress
    : undefined

/** `app.all("*", spoke({ dataDir }))`, after the host's own routes. */
export const spoke = (mounted: Mounted = {}) => {
  const { close, open } = mountedInstance(mounted)
  const handler = async (context: HonoContext) => {
    const clientAddress = addressOf(context)
    return (await open()).fetch(context.req.raw, clientAddress === undefined ? {} : { clientAddress })
  }
  return Object.assign(handler, { close })
}
