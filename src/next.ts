/**
 * `import { spoke } from "spoke/next"`: the API of an instance in this process as the handlers of a Next.js route file.
 */
import { type Mounted, type MountedInstance, mountedInstance } from "./app/mount/MountedInstance.ts"

export type { Mounted } from "./app/mount/MountedInstance.ts"

/** A development server reloads a route file after each change, but a data directory belongs to one instance. */
const instancesKey = Symbol.for("spoke/next")
const instances: typeof globalThis & { [instancesKey]?: Map<string, MountedInstance> } = globalThis

/**
 * `export const { GET, POST, PUT, PATCH, DELETE, OPTIONS, HEAD } = spoke({ dataDir })` in `app/[[...path]]/route.ts`.
 */
export const spoke = (mounted: Mounted = {}) => {
  const all = (instances[instancesKey] ??= new Map())
  const name = typeof mounted === "function" ? "" : (mounted.databaseUrl ?? mounted.dataDir ?? ".spoke")
  const own = (name === "" ? undefined : all.get(name)) ?? mountedInstance(mounted)
  if (name !== "") all.set(name, own)
  const handler = async (request: Request) => (await own.open()).fetch(request)
  return {
    GET: handler,
    HEAD: handler,
    POST: handler,
    PUT: handler,
    PATCH: handler,
    DELETE: handler,
    OPTIONS: handler,
    close: own.close
  }
}
