/** `import { spoke } from "spoke/hono"`: the API of an instance in this process as a Hono handler. */
import { type Mounted, mountedInstance } from "./app/mount/MountedInstance.ts"

export type { Mounted } from "./app/mount/MountedInstance.ts"

/** `app.all("*", spoke({ dataDir }))`, after the host's own routes. */
export const spoke = (mounted: Mounted = {}) => {
  const { close, open } = mountedInstance(mounted)
  const handler = async (context: { readonly req: { readonly raw: Request } }) =>
    (await open()).fetch(context.req.raw)
  return Object.assign(handler, { close })
}
