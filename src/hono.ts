/** `import { spoke } from "spoke/hono"`: the API of an instance in this process as a handler of Hono. */
import { type Mounted, opening } from "./app/mount/Opening.ts"

export type { Mounted } from "./app/mount/Opening.ts"

/** `app.all("*", spoke({ dataDir }))`, behind the host's own routes. */
export const spoke = (mounted: Mounted = {}) => {
  const { close, open } = opening(mounted)
  const handler = async (context: { readonly req: { readonly raw: Request } }) =>
    (await open()).fetch(context.req.raw)
  return Object.assign(handler, { close })
}
