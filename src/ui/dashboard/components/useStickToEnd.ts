/** A box of messages that grows: it shows its end while its reader is there, and stays where they read otherwise. */
import { type RefObject, type UIEvent, useLayoutEffect, useRef } from "react"

/** How near to its end a reader counts as following, in pixels. */
const near = 80

interface Sticking {
  readonly frame: RefObject<HTMLDivElement | null>
  readonly onScroll: (event: UIEvent) => void
  /** The reader stays where they are, whatever comes. */
  readonly hold: () => void
  /** The reader is brought to the end: what they have just written is there. */
  readonly follow: () => void
}

export const useStickToEnd = (): Sticking => {
  const frame = useRef<HTMLDivElement>(null)
  const following = useRef(true)
  useLayoutEffect(() => {
    const box = frame.current
    if (box !== null && following.current) box.scrollTop = box.scrollHeight
  })
  return {
    frame,
    onScroll: ({ currentTarget: { clientHeight, scrollHeight, scrollTop } }) => {
      following.current = scrollHeight - scrollTop - clientHeight < near
    },
    hold: () => {
      following.current = false
    },
    follow: () => {
      following.current = true
    }
  }
}
