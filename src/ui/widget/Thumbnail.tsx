/** @jsxImportSource preact */
/**
 * The thumbnail of a file. It is drawn on a canvas, because the page's content security policy may forbid `blob:`
 * images.
 */
import { useEffect, useRef } from "preact/hooks"

const sizePx = 112

export const Thumbnail = ({ blob }: { readonly blob: Blob }) => {
  const canvas = useRef<HTMLCanvasElement>(null)
  useEffect(() => {
    let isUnmounted = false
    const draw = async () => {
      const bitmap = await createImageBitmap(blob)
      const element = canvas.current
      if (!isUnmounted && element !== null) {
        const cropPx = Math.min(bitmap.width, bitmap.height)
        element
          .getContext("2d")
          ?.drawImage(
            bitmap,
            (bitmap.width - cropPx) / 2,
            (bitmap.height - cropPx) / 2,
            cropPx,
            cropPx,
            0,
            0,
            sizePx,
            sizePx
          )
      }
      bitmap.close()
    }
    // The file's name is shown beside it, so an image that cannot be drawn is no error.
    void draw().catch(() => undefined)
    return () => {
      isUnmounted = true
    }
  }, [blob])
  return <canvas ref={canvas} width={sizePx} height={sizePx} aria-hidden="true" />
}
