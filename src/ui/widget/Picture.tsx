/** @jsxImportSource preact */
/** A small picture drawn from bytes that are here already: no address is loaded, so no policy of the page can refuse it. */
import { useEffect, useRef } from "preact/hooks"

const edgePx = 112

export const Picture = ({ blob }: { readonly blob: Blob }) => {
  const canvas = useRef<HTMLCanvasElement>(null)
  useEffect(() => {
    let gone = false
    const draw = async () => {
      const bitmap = await createImageBitmap(blob)
      const target = canvas.current
      if (!gone && target !== null) {
        const side = Math.min(bitmap.width, bitmap.height)
        target
          .getContext("2d")
          ?.drawImage(
            bitmap,
            (bitmap.width - side) / 2,
            (bitmap.height - side) / 2,
            side,
            side,
            0,
            0,
            edgePx,
            edgePx
          )
      }
      bitmap.close()
    }
    // The name of a picture that cannot be drawn is still shown.
    void draw().catch(() => undefined)
    return () => {
      gone = true
    }
  }, [blob])
  return <canvas ref={canvas} width={edgePx} height={edgePx} aria-hidden="true" />
}
