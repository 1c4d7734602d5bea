import { useState } from "react"

/** Time in milliseconds for which a button says that the text was copied. */
const shownMs = 2_000

/** Copies the selection of a field beside the focus, so that it also works inside an open dialog. */
const copySelection = (text: string): boolean => {
  const focused = document.activeElement
  const field = document.createElement("textarea")
  field.value = text
  field.className = "visually-hidden"
  field.tabIndex = -1
  ;(focused?.parentElement ?? document.body).append(field)
  field.select()
  const isCopied = document.execCommand("copy")
  field.remove()
  if (focused instanceof HTMLElement) focused.focus()
  return isCopied
}

/** Pages without TLS have no clipboard interface. */
const write = (text: string): Promise<boolean> =>
  window.isSecureContext
    ? navigator.clipboard.writeText(text).then(
        () => true,
        () => copySelection(text)
      )
    : Promise.resolve(copySelection(text))

/** Whether a text was just copied, and a function that copies one. */
export const useCopied = (): readonly [boolean, (text: string) => void] => {
  const [copied, setCopied] = useState(false)
  const copy = (text: string) => {
    void write(text).then((isCopied) => {
      if (!isCopied) return
      setCopied(true)
      window.setTimeout(() => setCopied(false), shownMs)
    })
  }
  return [copied, copy]
}
