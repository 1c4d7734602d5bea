/**
 * A growing list of messages: it scrolls to the end while its reader is there, and does not move if they read
 * elsewhere.
 */
import { type RefObject, type UIEvent, useEffect, useLayoutEffect, useRef } from "react"

/** Distance from the end within which the list follows, in pixels. */
const followDistancePx = 80

const isAtEnd = ({ clientHeight, scrollHeight, scrollTop }: Element): boolean =>
  scrollHeight - scrollTop - clientHeight < followDistancePx

interface Sticking {
  readonly frame: RefObject<HTMLDivElement | null>
  readonly onScroll: (event: UIEvent) => void
  /** The reader stays where they are when text is added. */
  readonly hold: () => void
  /** The reader is brought to the end: what they have just written is there. */
  readonly follow: () => void
}

/** `own` is the id of the last thing that the reader has written: with another one they are brought to the end. */
export const useStickToEnd = (own?: string | number): Sticking => {
  const frame = useRef<HTMLDivElement>(null)
  const following = useRef(true)
  const lastOwn = useRef(own)
  /** Scroll position after the last new text. */
  const placedAt = useRef(0)
  const stick = () => {
    const box = frame.current
    if (box === null || !following.current) return
    // A scroll event comes with the next frame, and the next words of a reply may come before it.
    if (box.scrollTop < placedAt.current && !isAtEnd(box)) {
      following.current = false
      return
    }
    box.scrollTop = box.scrollHeight
    placedAt.current = box.scrollTop
  }
  useLayoutEffect(() => {
    if (own !== undefined && own !== lastOwn.current) {
      lastOwn.current = own
      following.current = true
      placedAt.current = 0
    }
    stick()
  })
  // The content also grows by itself, and the list shrinks when the content below it grows.
  useEffect(() => {
    const box = frame.current
    if (box === null) return
    const content = new MutationObserver(stick)
    content.observe(box, { characterData: true, childList: true, subtree: true })
    const size = new ResizeObserver(() => {
      placedAt.current = Math.min(placedAt.current, box.scrollHeight - box.clientHeight)
      stick()
    })
    size.observe(box)
    return () => {
      content.disconnect()
      size.disconnect()
    }
  }, [])
  return {
    frame,
    onScroll: ({ currentTarget }) => {
      following.current = isAtEnd(currentTarget)
    },
    hold: () => {
      following.current = false
    },
    follow: () => {
      following.current = true
      placedAt.current = 0
    }
  }
}
