import { createRoot } from "react-dom/client"
import { App } from "./App.tsx"
import { preload } from "./pages.ts"
import { showStoredScheme } from "./Scheme.ts"
import { showFont } from "./window/font.ts"
import "./base.css"

// Everything is below /app; the address itself is the same page.
if (location.pathname === "/") history.replaceState(null, "", "/app")

preload(location.pathname.slice("/app".length) || "/")
showStoredScheme()
showFont()
const root = document.getElementById("root")
if (root !== null) createRoot(root).render(<App />)
