/** Toasts: a message about the last action with an undo button, announced to screen readers. */
import { useEffect, useState, useSyncExternalStore } from "react"
import { texts, useText } from "../../text/Language.tsx"
import { Button } from "../Button.tsx"
import css from "./Toast.module.css"
import { makeListeners } from "../../listeners.ts"

const words = texts(
  { undo: "Undo", dismiss: "Dismiss", region: "What has just happened" },
  { undo: "Rückgängig", dismiss: "Ausblenden", region: "Was gerade geschehen ist" }
)

/** How long a toast is shown: enough time to read it and to press its button. */
const shownMs = 8_000
/** More toasts at once would cover the page. */
const maxToasts = 3

interface ToastItem {
  readonly key: number
  readonly text: string
  readonly undo: (() => void) | null
}

let lastKey = 0
let currentToasts: ReadonlyArray<ToastItem> = []
const { listen, notify } = makeListeners()

const setToasts = (toasts: ReadonlyArray<ToastItem>) => {
  currentToasts = toasts
  notify()
}
const dismiss = (key: number) => setToasts(currentToasts.filter((item) => item.key !== key))

/** `undo` reverts the action; omitted if it cannot be reverted. */
export const toast = (text: string, undo: (() => void) | null = null): void => {
  lastKey += 1
  setToasts([...currentToasts.slice(1 - maxToasts), { key: lastKey, text, undo }])
}

const currentItems = () => currentToasts

const Toast = ({ item, paused }: { readonly item: ToastItem; readonly paused: boolean }) => {
  const t = useText(words)
  const { key, text, undo } = item
  useEffect(() => {
    if (paused) return
    const timer = setTimeout(() => dismiss(key), shownMs)
    return () => clearTimeout(timer)
  }, [key, paused])
  return (
    <div className={css["toast"]}>
      <span>{text}</span>
      {undo === null ? null : (
        <Button
          kind="quiet"
          onClick={() => {
            dismiss(key)
            undo()
          }}
        >
          {t.undo}
        </Button>
      )}
      <Button kind="quiet" icon aria-label={t.dismiss} onClick={() => dismiss(key)}>
        ×
      </Button>
    </div>
  )
}

/** The list of toasts, rendered once. Toasts do not disappear while one of them is hovered or focused. */
export const Toasts = () => {
  const t = useText(words)
  const shown = useSyncExternalStore(listen, currentItems)
  const [paused, setPaused] = useState(false)
  // Removes the toasts of the previous user.
  useEffect(() => setToasts([]), [])
  return (
    <section
      className={css["region"]}
      aria-label={t.region}
      onPointerEnter={() => setPaused(true)}
      onPointerLeave={() => setPaused(false)}
      onFocus={() => setPaused(true)}
      onBlur={() => setPaused(false)}
    >
      <div role="status" aria-live="polite" className={css["list"]}>
        {shown.map((item) => (
          <Toast key={item.key} item={item} paused={paused} />
        ))}
      </div>
    </section>
  )
}
