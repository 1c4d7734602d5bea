import { useState } from "react"

/** How long a button shows that the text was copied. */
const feedbackMs = 2_000

/** Copies with a temporary field. It is next to the focused element, so that it also works in a modal dialog. */
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

/** Pages without HTTPS have no clipboard API. */
export const copyText = (text: string): Promise<boolean> =>
  window.isSecureContext
    ? navigator.clipboard.writeText(text).then(
        () => true,
        () => copySelection(text)
      )
    : Promise.resolve(copySelection(text))

/** Whether a text was just copied, and a function that copies one. */
export const useCopy = (): readonly [boolean, (text: string) => void] => {
  const [copied, setCopied] = useState(false)
  const copy = (text: string) => {
    void copyText(text).then((isCopied) => {
      if (!isCopied) return
      setCopied(true)
      window.setTimeout(() => setCopied(false), feedbackMs)
    })
  }
  return [copied, copy]
}
