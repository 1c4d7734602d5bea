/**
 * The part of the window that an on-screen keyboard leaves visible. On iOS, and on Android unless the page asks for it,
 * a keyboard changes neither the size of the page nor `dvh`, so it would cover the field of an element at a fixed
 * position.
 */
import { useEffect, useState } from "preact/hooks"

/** In pixels of the page. */
export interface VisibleArea {
  readonly top: number
  readonly height: number
}

/** Bars of browsers take less of the height in pixels, keyboards more. */
const minKeyboardHeight = 150
/** A visitor who zooms in sees a part of the chat, which must not change then. */
const maxScale = 1.05

/** Undefined without a keyboard. */
const currentArea = (viewport: VisualViewport): VisibleArea | undefined => {
  const pageHeight = document.scrollingElement?.clientHeight ?? 0
  const { height, offsetTop, scale } = viewport
  return scale > maxScale || pageHeight - height < minKeyboardHeight ? undefined : { top: offsetTop, height }
}

/** The visible area while an on-screen keyboard is open. */
export const useVisibleArea = (): VisibleArea | undefined => {
  const [area, setArea] = useState<VisibleArea>()
  useEffect(() => {
    const viewport = visualViewport
    if (viewport === null) return
    const update = () => setArea(currentArea(viewport))
    update()
    for (const type of ["resize", "scroll"]) viewport.addEventListener(type, update)
    return () => {
      for (const type of ["resize", "scroll"]) viewport.removeEventListener(type, update)
    }
  }, [])
  return area
}
