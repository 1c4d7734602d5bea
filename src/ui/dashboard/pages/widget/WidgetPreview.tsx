/** The widget itself, in an iframe: it shows the settings of the form, and sends no requests. */
import { useEffect, useRef, useState } from "react"
import type { PreviewMessage } from "../../../widget/Preview.ts"
import { texts, useText } from "../../text/Language.tsx"
import css from "./WidgetPreview.module.css"

const words = texts({ preview: "Preview of the widget" }, { preview: "Vorschau des Widgets" })

const schemeNow = () => document.documentElement.dataset["scheme"] ?? "system"

export const WidgetPreview = ({ look }: { readonly look: NonNullable<PreviewMessage["look"]> }) => {
  const t = useText(words)
  const frame = useRef<HTMLIFrameElement>(null)
  const [loaded, setLoaded] = useState(0)
  const [scheme, setScheme] = useState(schemeNow)
  useEffect(() => {
    const observer = new MutationObserver(() => setScheme(schemeNow()))
    observer.observe(document.documentElement, { attributeFilter: ["data-scheme"] })
    return () => observer.disconnect()
  }, [])
  const told = JSON.stringify({ look, scheme } satisfies PreviewMessage)
  useEffect(() => {
    frame.current?.contentWindow?.postMessage(JSON.parse(told), location.origin)
  }, [loaded, told])
  return (
    <iframe
      ref={frame}
      className={css["frame"]}
      src="/widget-preview"
      title={t.preview}
      onLoad={() => setLoaded((times) => times + 1)}
    />
  )
}
