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

/** When an instance cannot be opened, the next request tries again. One is opened after the one before has closed. */
export const mountedInstance = (mounted: Mounted): MountedInstance => {
  let opened: Promise<Spoke> | undefined
  let closed: Promise<unknown> = Promise.resolve()
  const open = () => {
    if (typeof mounted === "function") return mounted()
    if (opened !== undefined) return opened
    const opening = closed.then(() => Library.createSpoke(mounted))
    opened = opening
    opening.catch(() => {
      if (opened === opening) opened = undefined
    })
    return opening
  }
  const close = () => {
    const last = opened
    opened = undefined
    // Nothing has to be closed if it could not be opened.
    const ended = closed.then(() =>
      last?.then(
        (spoke) => spoke.close(),
        () => undefined
      )
    )
    closed = ended.catch(() => undefined)
    return ended
  }
  return { open, close }
}
