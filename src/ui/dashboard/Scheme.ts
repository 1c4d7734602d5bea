/** Light, dark or the system's colour scheme: stored in the browser, and applied before the first render. */
import { useState } from "react"
import { store, stored } from "./window/stored.ts"

const schemes = ["system", "light", "dark"] as const
export type Scheme = (typeof schemes)[number]
const key = "spoke.scheme"

const storedScheme = (): Scheme => {
  const text = stored(key)
  return schemes.find((scheme) => scheme === text) ?? "system"
}

const show = (scheme: Scheme): void => {
  if (scheme === "system") delete document.documentElement.dataset["scheme"]
  else document.documentElement.dataset["scheme"] = scheme
}

/** Applied before the first render. */
export const showStoredScheme = (): void => show(storedScheme())

export const useScheme = () => {
  const [scheme, setScheme] = useState(storedScheme)
  const choose = (chosen: Scheme) => {
    store(key, chosen)
    show(chosen)
    setScheme(chosen)
  }
  return [scheme, choose] as const
}
