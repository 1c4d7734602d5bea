/**
 * `import { spoke } from "spoke/express"`: the API of an instance in this process as a middleware for Express, or for
 * Node's HTTP server.
 */
import type { ServerResponse } from "node:http"
import { answer, type NodeRequest } from "./app/mount/NodeRequests.ts"
import { type Mounted, mountedInstance } from "./app/mount/MountedInstance.ts"

export type { Mounted } from "./app/mount/MountedInstance.ts"

/** `app.use(spoke({ dataDir }))`, after the host's own routes: it answers every request that it gets. */
export const spoke = (mounted: Mounted = {}) => {
  const { close, open } = mountedInstance(mounted)
  const middleware = async (
    request: NodeRequest,
    response: ServerResponse,
    next: (error: unknown) => void
  ): Promise<void> => {
    try {
      await answer(await open(), request, response, request.url ?? "/")
    } catch (cause) {
      next(cause)
    }
  }
  return Object.assign(middleware, { close })
}
