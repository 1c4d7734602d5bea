/** @jsxImportSource preact */
/** The script of the documentation: the reader's colour scheme, the search, and the reference of the API. */
import { render } from "preact"
import { Reference } from "./Reference.tsx"
import { Search } from "./Search.tsx"

/** The colour scheme that was chosen in the dashboard; null if none was, or if storage is blocked. */
const storedScheme = (): string | null => {
  try {
    return localStorage.getItem("spoke.scheme")
  } catch {
    return null
  }
}
const scheme = storedScheme()
if (scheme === "light" || scheme === "dark") document.documentElement.dataset["scheme"] = scheme

const search = document.getElementById("search")
if (search !== null) render(<Search />, search)

const reference = document.getElementById("reference")
const operations = document.getElementById("operations")
if (reference !== null && operations !== null) {
  reference.replaceChildren()
  render(<Reference contents={operations} />, reference)
}
