/** Builds the dashboard into dist/ui. `npm run dev:ui` serves it with hot reloading, next to a running server. */
import * as Path from "node:path"
import react from "@vitejs/plugin-react"
import { defineConfig, type Plugin } from "vite"

const folder = import.meta.dirname

/** The component library's own words in languages that the dashboard has not. */
const otherLanguages = /\/private\/intl\/.*\/(?!en-US|de-DE)[a-z]{2}-[A-Z]{2}\.mjs$/u

const ownLanguages: Plugin = {
  name: "own-languages",
  load: (id) => (otherLanguages.test(id) ? "export default {}" : null)
}

export default defineConfig({
  root: Path.join(folder, "dashboard"),
  base: "/assets/",
  plugins: [react(), ownLanguages],
  build: {
    outDir: Path.join(folder, "../../dist/ui"),
    // Flat: every file of the folder is served as /assets/<name>, with its hash in the name.
    assetsDir: "",
    emptyOutDir: true,
    target: "es2022",
    // The content security policy allows no inline data for scripts, and images are few.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // A test holds the first load to 180 kB compressed.
    chunkSizeWarningLimit: 1_000,
    rollupOptions: {
      onwarn: (warning, warn) => {
        // Comments of a library's own build, which are dropped.
        if (warning.code !== "INVALID_ANNOTATION") warn(warning)
      }
    }
  },
  server: {
    proxy: { "/api": { target: "http://127.0.0.1:3000", ws: true }, "/widget.js": "http://127.0.0.1:3000" }
  }
})
