/** The colour scheme: light, dark or that of the system. It is stored in the browser. */
import { useState } from "react"
import { readStored, store } from "./window/localStorage.ts"

const schemes = ["system", "light", "dark"] as const
export type Scheme = (typeof schemes)[number]
const key = "spoke.scheme"

const storedScheme = (): Scheme => {
  const text = readStored(key)
  return schemes.find((scheme) => scheme === text) ?? "system"
}

const applyScheme = (scheme: Scheme): void => {
  if (scheme === "system") delete document.documentElement.dataset["scheme"]
  else document.documentElement.dataset["scheme"] = scheme
}

/** Called before the first render. */
export const applyStoredScheme = (): void => applyScheme(storedScheme())

/** The colour scheme, and a function that changes it. */
export const useScheme = () => {
  const [scheme, setScheme] = useState(storedScheme)
  const choose = (chosen: Scheme) => {
    store(key, chosen)
    applyScheme(chosen)
    setScheme(chosen)
  }
  return [scheme, choose] as const
}
