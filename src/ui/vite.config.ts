/** Builds the dashboard into dist/ui. `npm run dev:ui` serves it with hot reloading, next to a running server. */
import * as Path from "node:path"
import { defineConfig, type Plugin } from "vite"
import { pageFiles } from "./dashboard/pageFiles.ts"

const folder = import.meta.dirname

/** The name by which `pageFiles` knows the module of a page. */
const nameOf = (file: string) => {
  const name = Path.basename(file, ".tsx")
  return name.charAt(0).toLowerCase() + name.slice(1)
}

/**
 * Writes pages.json: by pattern of a path, the scripts and style sheets of its page that the first page does not have,
 * and the data that it asks first.
 */
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
    const rows = pageFiles.map(([pattern, names, data]) => {
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
      return {
        pattern: pattern.source,
        files: [...files].filter((file) => !first.has(file)),
        data: data === undefined ? [] : [data]
      }
    })
    this.emitFile({ type: "asset", fileName: "pages.json", source: JSON.stringify(rows) })
  }
}

/**
 * Modules that most pages need are one file, and so are those that render Markdown, because each file is one request.
 * Charts and pages have files of their own.
 */
const chunkOf = (id: string): string | undefined => {
  if (/[\\/]node_modules[\\/](?:markdown-it|mdurl|remend|linkify-it|punycode|uc\.micro|entities)/u.test(id))
    return "markdown"
  if (/[\\/]ui[\\/]markdown[\\/]|[\\/]components[\\/]replies[\\/](?:Prose|marking)\./u.test(id))
    return "markdown"
  if (/[\\/]components[\\/](?:charts|replies)[\\/]/u.test(id)) return undefined
  return /[\\/]dashboard[\\/](?:components|forms|text|window)[\\/]/u.test(id) ? "kit" : undefined
}

export default defineConfig({
  root: Path.join(folder, "dashboard"),
  base: "/assets/",
  plugins: [filesOfPages],
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
      output: { experimentalMinChunkSize: 3_000, manualChunks: chunkOf },
      onwarn: (warning, warn) => {
        // Comments and directives of a library's own build, which are dropped.
        if (warning.code !== "INVALID_ANNOTATION" && warning.code !== "MODULE_LEVEL_DIRECTIVE") warn(warning)
      }
    }
  },
  server: {
    proxy: { "/api": { target: "http://127.0.0.1:3000", ws: true }, "/widget.js": "http://127.0.0.1:3000" }
  }
})
