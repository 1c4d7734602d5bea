/** Builds the dashboard into dist/ui. `npm run dev:ui` serves it with hot reloading, next to a running server. */
import * as Path from "node:path"
import react from "@vitejs/plugin-react"
import { defineConfig, type Plugin } from "vite"
import { shown } from "./dashboard/shown.ts"

const folder = import.meta.dirname

/** The component library's own words in languages that the dashboard has not. */
const otherLanguages = /\/private\/intl\/.*\/(?!en-US|de-DE)[a-z]{2}-[A-Z]{2}\.mjs$/u

const ownLanguages: Plugin = {
  name: "own-languages",
  load: (id) => (otherLanguages.test(id) ? "export default {}" : null)
}

/** The name by which `shown` knows the module of a page. */
const nameOf = (file: string) => {
  const name = Path.basename(file, ".tsx")
  return name.charAt(0).toLowerCase() + name.slice(1)
}

/** Writes pages.json: by pattern of a path, the scripts and style sheets of its page that no other page has. */
const filesOfPages: Plugin = {
  name: "files-of-pages",
  generateBundle(_options, bundle) {
    const chunks = Object.values(bundle).filter((output) => output.type === "chunk")
    const named = new Map(chunks.map((chunk) => [chunk.fileName, chunk]))
    const closure = (file: string, found: Set<string>): Set<string> => {
      const chunk = named.get(file)
      if (chunk === undefined || found.has(file)) return found
      found.add(file)
      for (const next of chunk.imports) closure(next, found)
      for (const sheet of chunk.viteMetadata?.importedCss ?? []) found.add(sheet)
      return found
    }
    const first = new Set(
      chunks.filter(({ isEntry }) => isEntry).flatMap((chunk) => [...closure(chunk.fileName, new Set())])
    )
    const rows = shown.map(([pattern, names]) => {
      const files = new Set<string>()
      for (const name of names) {
        // A small page may stand in one file with another.
        const found = chunks.filter(({ moduleIds }) =>
          moduleIds.some(
            (id) => id.includes("/dashboard/pages/") && id.endsWith(".tsx") && nameOf(id) === name
          )
        )
        const [chunk] = found
        if (chunk === undefined || found.length > 1) this.error(`${found.length} files for the page ${name}`)
        closure(chunk.fileName, files)
      }
      return { pattern: pattern.source, files: [...files].filter((file) => !first.has(file)) }
    })
    this.emitFile({ type: "asset", fileName: "pages.json", source: JSON.stringify(rows) })
  }
}

export default defineConfig({
  root: Path.join(folder, "dashboard"),
  base: "/assets/",
  plugins: [react(), ownLanguages, filesOfPages],
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
      // Small chunks that pages share become parts of others: each is a request of its own.
      output: { experimentalMinChunkSize: 3_000 },
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
