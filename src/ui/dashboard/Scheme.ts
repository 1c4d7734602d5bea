/** Light, dark or the system's colour scheme: stored in the browser, and applied before the first render. */
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

/** Applied before the first render. */
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
