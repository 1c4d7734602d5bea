import { options } from "preact"
import { createRoot } from "react-dom/client"
import { App } from "./App.tsx"
import { preload } from "./pages.ts"
import { showStoredScheme } from "./Scheme.ts"
import { showFont } from "./window/font.ts"
import "./base.css"

// Effects run directly after what is drawn, as React does after what somebody types or presses: an Enter that follows a
// letter within the same frame otherwise acts on the text before it.
options.requestAnimationFrame = queueMicrotask

// Everything is below /app; the address itself is the same page.
if (location.pathname === "/") history.replaceState(null, "", "/app")

preload(location.pathname.slice("/app".length) || "/")
showStoredScheme()
showFont()
const root = document.getElementById("root")
if (root !== null) createRoot(root).render(<App />)
