import { options } from "preact"
import { createRoot } from "react-dom/client"
import { App } from "./App.tsx"
import { preload } from "./pages.ts"
import { applyStoredScheme } from "./Scheme.ts"
import { applyFontWhenLoaded } from "./window/font.ts"
import "./base.css"

// Runs effects directly after rendering, as React does after input events. Otherwise an Enter key that follows a letter
// within one frame acts on the text without this letter.
options.requestAnimationFrame = queueMicrotask

// All routes are below /app. The root address shows the same page.
if (location.pathname === "/") history.replaceState(null, "", "/app")

preload(location.pathname.slice("/app".length) || "/")
applyStoredScheme()
applyFontWhenLoaded()
const root = document.getElementById("root")
if (root !== null) createRoot(root).render(<App />)
