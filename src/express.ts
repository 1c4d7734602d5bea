/** `import { spoke } from "spoke/express"`: the API of an instance in this process as a middleware of Express, or of Node's own server. */
import type { ServerResponse } from "node:http"
import { answer, type NodeRequest } from "./app/mount/NodeRequests.ts"
import { type Mounted, opening } from "./app/mount/Opening.ts"

export type { Mounted } from "./app/mount/Opening.ts"

/** `app.use(spoke({ dataDir }))`, behind the host's own routes: it answers every request that it gets. */
export const spoke = (mounted: Mounted = {}) => {
  const { close, open } = opening(mounted)
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
