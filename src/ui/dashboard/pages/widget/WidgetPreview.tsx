/** The widget itself, in an iframe: it shows the settings of the form, and sends no requests. */
import { useEffect, useRef, useState } from "react"
import type { PreviewMessage } from "../../../widget/Preview.ts"
import { texts, useText } from "../../text/Language.tsx"
import css from "./WidgetPreview.module.css"

const words = texts({ preview: "Preview of the widget" }, { preview: "Vorschau des Widgets" })

const currentScheme = () => document.documentElement.dataset["scheme"] ?? "system"

export const WidgetPreview = ({ look }: { readonly look: NonNullable<PreviewMessage["look"]> }) => {
  const t = useText(words)
  const frame = useRef<HTMLIFrameElement>(null)
  const [loadCount, setLoadCount] = useState(0)
  const [scheme, setScheme] = useState(currentScheme)
  useEffect(() => {
    const observer = new MutationObserver(() => setScheme(currentScheme()))
    observer.observe(document.documentElement, { attributeFilter: ["data-scheme"] })
    return () => observer.disconnect()
  }, [])
  const messageJson = JSON.stringify({ look, scheme } satisfies PreviewMessage)
  useEffect(() => {
    frame.current?.contentWindow?.postMessage(JSON.parse(messageJson), location.origin)
  }, [loadCount, messageJson])
  return (
    <iframe
      ref={frame}
      className={css["frame"]}
      src="/widget-preview"
      title={t.preview}
      onLoad={() => setLoadCount((times) => times + 1)}
    />
  )
}
