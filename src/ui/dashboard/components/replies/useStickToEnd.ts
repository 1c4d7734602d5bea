/** Keeps a growing list of messages scrolled to its end, unless the user has scrolled up. */
import { type RefObject, type UIEvent, useEffect, useLayoutEffect, useRef, useState } from "react"
import { ReplyFollower } from "../../../ReplyFollower.ts"

interface StickToEnd {
  readonly frame: RefObject<HTMLDivElement | null>
  readonly onScroll: (event: UIEvent) => void
  /** Keeps the scroll position when text is added. */
  readonly hold: () => void
  /** Scrolls to the end at the next change. */
  readonly follow: () => void
}

interface Options {
  /** The id of the user's last message. When it changes, the list scrolls to the end. */
  readonly ownMessageId: string | number | undefined
  /** Keeps the start of the last message visible, for replies that grow. */
  readonly keepsStart?: boolean
}

export const useStickToEnd = ({ keepsStart = false, ownMessageId }: Options): StickToEnd => {
  const frame = useRef<HTMLDivElement>(null)
  const [follower] = useState(() => new ReplyFollower())
  const lastOwnMessageId = useRef(ownMessageId)
  const keepsStartNow = useRef(keepsStart)
  const update = () => {
    const element = frame.current
    if (element !== null) follower.update(element, element.children, keepsStartNow.current)
  }
  useLayoutEffect(() => {
    keepsStartNow.current = keepsStart
    if (ownMessageId !== undefined && ownMessageId !== lastOwnMessageId.current) {
      lastOwnMessageId.current = ownMessageId
      follower.follow()
    }
    update()
  })
  // The content also changes without a rendering, and the list shrinks when content below it grows.
  useEffect(() => {
    const element = frame.current
    if (element === null) return
    const contentObserver = new MutationObserver(update)
    contentObserver.observe(element, { characterData: true, childList: true, subtree: true })
    const sizeObserver = new ResizeObserver(() => {
      follower.resized(element)
      update()
    })
    sizeObserver.observe(element)
    return () => {
      contentObserver.disconnect()
      sizeObserver.disconnect()
    }
  }, [])
  return {
    frame,
    onScroll: ({ currentTarget }) => follower.scrolled(currentTarget),
    hold: () => follower.hold(),
    follow: () => follower.follow()
  }
}
