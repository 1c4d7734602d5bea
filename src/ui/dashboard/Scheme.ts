/** Light, dark, or as the system is: kept in the browser, and shown from the first moment on. */
import { useState } from "react"

const schemes = ["system", "light", "dark"] as const
export type Scheme = (typeof schemes)[number]
const key = "spoke.scheme"

const stored = (): Scheme => {
  const text = localStorage.getItem(key)
  return schemes.find((scheme) => scheme === text) ?? "system"
}

const show = (scheme: Scheme): void => {
  if (scheme === "system") delete document.documentElement.dataset["scheme"]
  else document.documentElement.dataset["scheme"] = scheme
}

/** Before anything is drawn. */
export const showStoredScheme = (): void => show(stored())

export const useScheme = () => {
  const [scheme, setScheme] = useState(stored)
  const choose = (chosen: Scheme) => {
    localStorage.setItem(key, chosen)
    show(chosen)
    setScheme(chosen)
  }
  return [scheme, choose] as const
}
