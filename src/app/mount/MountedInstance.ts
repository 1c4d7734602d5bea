/** One instance of the library for a mounted handler, opened by the first request. */
import type { Spoke, SpokeSettings } from "../../client/Spoke.ts"
import * as Library from "../library/Library.ts"

/** Settings of an instance that is the handler's own, or a way to one that its host opens. */
export type Mounted = SpokeSettings | (() => Promise<Spoke>)

export interface MountedInstance {
  readonly open: () => Promise<Spoke>
  /** Ends what was opened; the next request opens it again. */
  readonly close: () => Promise<void>
}

/** An instance that could not be opened is tried again by the next request. */
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
