/** Builds the dashboard into dist/ui. `npm run dev:ui` serves it with hot reloading, next to a running server. */
import * as Path from "node:path"
import { defineConfig, type Plugin } from "vite"
import { pageFiles } from "./dashboard/pageFiles.ts"

const folder = import.meta.dirname

/** The key of a page in `pages`: the name of its module with a lower-case first letter. */
const pageNameOf = (file: string) => {
  const name = Path.basename(file, ".tsx")
  return name.charAt(0).toLowerCase() + name.slice(1)
}

/**
 * Writes pages.json for the server. Each entry has the pattern of a path, the scripts and style sheets that its page
 * needs in addition to the entry's, and the data that it requests first.
 */
const pageFilesPlugin: Plugin = {
  name: "page-files",
  generateBundle(_options, bundle) {
    const chunks = Object.values(bundle).filter((output) => output.type === "chunk")
    const chunkByFile = new Map(chunks.map((chunk) => [chunk.fileName, chunk]))
    const collectFiles = (file: string, files: Set<string>): Set<string> => {
      const chunk = chunkByFile.get(file)
      if (chunk === undefined || files.has(file)) return files
      files.add(file)
      for (const imported of chunk.imports) collectFiles(imported, files)
      for (const styleSheet of chunk.viteMetadata?.importedCss ?? []) files.add(styleSheet)
      return files
    }
    const initialFiles = new Set(
      chunks.filter(({ isEntry }) => isEntry).flatMap((chunk) => [...collectFiles(chunk.fileName, new Set())])
    )
    const rows = pageFiles.map(([pattern, names, data]) => {
      const files = new Set<string>()
      for (const name of names) {
        // Rollup may put a small page into the chunk of another one.
        const matches = chunks.filter(({ moduleIds }) =>
          moduleIds.some(
            (id) => id.includes("/dashboard/pages/") && id.endsWith(".tsx") && pageNameOf(id) === name
          )
        )
        const [chunk] = matches
        if (chunk === undefined || matches.length > 1)
          this.error(`${matches.length} files for the page ${name}`)
        collectFiles(chunk.fileName, files)
      }
      return {
        pattern: pattern.source,
        files: [...files].filter((file) => !initialFiles.has(file)),
        data: data === undefined ? [] : [data]
      }
    })
    this.emitFile({ type: "asset", fileName: "pages.json", source: JSON.stringify(rows) })
  }
}

/**
 * The chunk of a module. Modules that most pages need are one chunk, and so are those that render Markdown, because
 * each chunk is a request. Charts and pages have their own chunks.
 */
const chunkOf = (id: string): string | undefined => {
  if (/[\\/]node_modules[\\/](?:markdown-it|mdurl|remend|linkify-it|punycode|uc\.micro|entities)/u.test(id))
    return "markdown"
  if (/[\\/]ui[\\/]markdown[\\/]|[\\/]components[\\/]replies[\\/](?:Prose|highlight)\./u.test(id))
    return "markdown"
  if (/[\\/]components[\\/](?:charts|replies)[\\/]/u.test(id)) return undefined
  return /[\\/]dashboard[\\/](?:components|forms|text|window)[\\/]/u.test(id) ? "kit" : undefined
}

export default defineConfig({
  root: Path.join(folder, "dashboard"),
  base: "/assets/",
  plugins: [pageFilesPlugin],
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
    // A test limits the first load to 180 kB compressed.
    chunkSizeWarningLimit: 1_000,
    rollupOptions: {
      // Small shared chunks are merged into others, because each is a request.
      output: { experimentalMinChunkSize: 3_000, manualChunks: chunkOf },
      onwarn: (warning, warn) => {
        // Ignores annotations and directives of libraries, which Rollup drops.
        if (warning.code !== "INVALID_ANNOTATION" && warning.code !== "MODULE_LEVEL_DIRECTIVE") warn(warning)
      }
    }
  },
  server: {
    proxy: { "/api": { target: "http://127.0.0.1:3000", ws: true }, "/widget.js": "http://127.0.0.1:3000" }
  }
})
