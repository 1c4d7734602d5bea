/** One instance of the library for a mounted handler, opened by the first request. */
import type { Spoke, SpokeSettings } from "../../client/Spoke.ts"
import * as Library from "../library/Library.ts"

/** Settings for the handler's own instance, or a function that returns an instance of the host. */
export type Mounted = SpokeSettings | (() => Promise<Spoke>)

export interface MountedInstance {
  readonly open: () => Promise<Spoke>
  /** Closes the instance. The next request opens it again. */
  readonly close: () => Promise<void>
}

/** When an instance cannot be opened, the next request tries again. */
export const mountedInstance = (mounted: Mounted): MountedInstance => {
  let opened: Promise<Spoke> | undefined
  const open = () => {
    if (typeof mounted === "function") return mounted()
    opened ??= Library.createSpoke(mounted).catch((cause: unknown) => {
      opened = undefined
      throw cause
    })
    return opened
  }
  const close = async () => {
    const ending = opened
    opened = undefined
    await (await ending)?.close()
  }
  return { open, close }
}
