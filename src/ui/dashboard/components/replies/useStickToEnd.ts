/** Keeps a growing list of messages scrolled to its end, unless the user has scrolled up. */
import { type RefObject, type UIEvent, useEffect, useLayoutEffect, useRef } from "react"

/** Distance from the end within which the list is kept at its end. */
const followDistancePx = 80

const isAtEnd = ({ clientHeight, scrollHeight, scrollTop }: Element): boolean =>
  scrollHeight - scrollTop - clientHeight < followDistancePx

interface StickToEnd {
  readonly frame: RefObject<HTMLDivElement | null>
  readonly onScroll: (event: UIEvent) => void
  /** Keeps the scroll position when text is added. */
  readonly hold: () => void
  /** Scrolls to the end at the next change. */
  readonly follow: () => void
}

/** `ownMessageId` is the id of the user's last message. When it changes, the list scrolls to the end. */
export const useStickToEnd = (ownMessageId?: string | number): StickToEnd => {
  const frame = useRef<HTMLDivElement>(null)
  const isFollowing = useRef(true)
  const lastOwnMessageId = useRef(ownMessageId)
  /** Scroll position after the last update. */
  const lastScrollTop = useRef(0)
  const scrollToEnd = () => {
    const element = frame.current
    if (element === null || !isFollowing.current) return
    // The user's scroll event comes with the next frame, which may be after this update.
    if (element.scrollTop < lastScrollTop.current && !isAtEnd(element)) {
      isFollowing.current = false
      return
    }
    element.scrollTop = element.scrollHeight
    lastScrollTop.current = element.scrollTop
  }
  useLayoutEffect(() => {
    if (ownMessageId !== undefined && ownMessageId !== lastOwnMessageId.current) {
      lastOwnMessageId.current = ownMessageId
      isFollowing.current = true
      lastScrollTop.current = 0
    }
    scrollToEnd()
  })
  // The content also changes without a rendering, and the list shrinks when content below it grows.
  useEffect(() => {
    const element = frame.current
    if (element === null) return
    const contentObserver = new MutationObserver(scrollToEnd)
    contentObserver.observe(element, { characterData: true, childList: true, subtree: true })
    const sizeObserver = new ResizeObserver(() => {
      lastScrollTop.current = Math.min(lastScrollTop.current, element.scrollHeight - element.clientHeight)
      scrollToEnd()
    })
    sizeObserver.observe(element)
    return () => {
      contentObserver.disconnect()
      sizeObserver.disconnect()
    }
  }, [])
  return {
    frame,
    onScroll: ({ currentTarget }) => {
      isFollowing.current = isAtEnd(currentTarget)
    },
    hold: () => {
      isFollowing.current = false
    },
    follow: () => {
      isFollowing.current = true
      lastScrollTop.current = 0
    }
  }
}
