import { createRoot } from "react-dom/client"
import { App } from "./App.tsx"
import { showStoredScheme } from "./Scheme.ts"
import "./base.css"

// Everything is below /app; the address itself is the same page.
if (location.pathname === "/") history.replaceState(null, "", "/app")

showStoredScheme()
const root = document.getElementById("root")
if (root !== null) createRoot(root).render(<App />)
