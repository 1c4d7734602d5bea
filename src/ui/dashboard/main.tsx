import { createRoot } from "react-dom/client"
import { App } from "./App.tsx"
import "./base.css"

const root = document.getElementById("root")
if (root !== null) createRoot(root).render(<App />)
