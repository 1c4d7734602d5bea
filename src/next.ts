/**
 * `import { spoke } from "spoke/next"`: the API of an instance in this process as the handlers of a Next.js route file.
 */
import { isDeepStrictEqual } from "node:util"
import { type Mounted, type MountedInstance, mountedInstance } from "./app/mount/MountedInstance.ts"
import { SpokeError } from "./client/Failure.ts"
import type { SpokeSettings } from "./client/Spoke.ts"

export type { Mounted } from "./app/mount/MountedInstance.ts"

interface Shared {
  readonly settings: unknown
  readonly instance: MountedInstance
}

/** A development server reloads a route file after each change, but a data directory belongs to one instance. */
const instancesKey = Symbol.for("spoke/next")
const instances: typeof globalThis & { [instancesKey]?: Map<string, Shared> } = globalThis

const namesOf = (given: object = {}) => Object.keys(given).toSorted()

/** What two settings are compared by. A reload creates functions and models anew. Next.js itself changes the environment. */
const comparable = ({ channels, env = {}, log: _, model, readers, tools, ...others }: SpokeSettings) => ({
  ...others,
  channels: namesOf(channels),
  env: Object.fromEntries(Object.entries(env).filter(([name]) => name.startsWith("SPOKE_"))),
  model: model === undefined ? null : `${model.provider}/${model.modelId}`,
  readers: namesOf(readers),
  tools: namesOf(tools)
})

/** The instance of the settings' database. */
const instanceOf = (mounted: SpokeSettings): MountedInstance => {
  const all = (instances[instancesKey] ??= new Map())
  const name = mounted.databaseUrl ?? mounted.dataDir ?? ".spoke"
  const settings = comparable(mounted)
  const found = all.get(name)
  if (found === undefined) {
    const instance = mountedInstance(mounted)
    all.set(name, { settings, instance })
    return instance
  }
  if (isDeepStrictEqual(found.settings, settings)) return found.instance
  throw new SpokeError({
    code: "INVALID_CONFIG",
    message:
      "spoke/next has mounted this database with other settings. Use the same settings in every route file, and restart the server after changing them."
  })
}

/**
 * `export const { GET, POST, PUT, PATCH, DELETE, OPTIONS, HEAD } = spoke({ dataDir })` in `app/[[...path]]/route.ts`.
 */
export const spoke = (mounted: Mounted = {}) => {
  const own = typeof mounted === "function" ? mountedInstance(mounted) : instanceOf(mounted)
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
