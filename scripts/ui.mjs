/**
 * Builds the dashboard, the widget and the documentation into dist/ui, if something has changed. `npm start` runs this while the server
 * starts: the API does not wait for it.
 */
import { createHash } from "node:crypto"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { fileURLToPath } from "node:url"
import { brotliCompressSync, gzipSync } from "node:zlib"
import { filesOfMetafile, filesOfRollup, packagesOf } from "./bundled.mjs"
import { buildDocs, guideFiles } from "./docs.mjs"
import { dist, replaceFile, root } from "./seed.mjs"

const source = Path.join(root, "src/ui")
const target = Path.join(dist, "ui")
const recordFile = Path.join(dist, "ui.json")

const filesBelow = (folder) =>
  Fs.readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => Path.join(entry.parentPath, entry.name))
    .sort()

const inputHash = () => {
  const hash = createHash("sha256")
  for (const file of [
    fileURLToPath(import.meta.url),
    fileURLToPath(new URL("bundled.mjs", import.meta.url)),
    fileURLToPath(new URL("docs.mjs", import.meta.url)),
    Path.join(root, "package-lock.json"),
    ...guideFiles(),
    ...filesBelow(source)
  ]) {
    hash.update(`${Path.relative(root, file)}\n`).update(Fs.readFileSync(file))
  }
  return hash.digest("hex")
}

/** True when {@link buildUi} would have something to do. */
export const isUiStale = () => {
  try {
    return JSON.parse(Fs.readFileSync(recordFile, "utf8")).hash !== inputHash()
  } catch {
    return true
  }
}

/**
 * Builds it and returns the files that it consists of. Always builds for production: if a test runner has set NODE_ENV
 * to `test`, Vite would build for development.
 */
const dashboard = async (outDir) => {
  const { build } = await import("vite")
  const nodeEnv = process.env.NODE_ENV
  process.env.NODE_ENV = "production"
  try {
    const built = await build({
      configFile: Path.join(source, "vite.config.ts"),
      logLevel: "warn",
      build: { outDir }
    })
    return filesOfRollup(built)
  } finally {
    if (nodeEnv === undefined) delete process.env.NODE_ENV
    else process.env.NODE_ENV = nodeEnv
  }
}

/** Imports a style sheet as its text, minified. */
const styleSheetTexts = (transform) => ({
  name: "style-sheet-texts",
  setup: ({ onLoad }) =>
    onLoad({ filter: /\.css$/ }, async ({ path }) => {
      const { code } = await transform(Fs.readFileSync(path, "utf8"), { loader: "css", minify: true })
      return { contents: code.trimEnd(), loader: "text" }
    })
})

/**
 * One script for any page, without names in the page's global scope, and the module that it loads when a visitor
 * opens the chat. Returns the files that they consist of.
 */
const widget = async (outDir) => {
  const entry = Path.join(source, "widget/main.tsx")
  if (!Fs.existsSync(entry)) return []
  const { build, transform } = await import("esbuild")
  const common = { bundle: true, minify: true, metafile: true, target: "es2022", logLevel: "warning" }
  const script = await build({
    ...common,
    entryPoints: [entry],
    outfile: Path.join(outDir, "widget.js"),
    format: "iife",
    jsx: "automatic",
    jsxImportSource: "preact",
    plugins: [styleSheetTexts(transform)]
  })
  const markdown = await build({
    ...common,
    entryPoints: [Path.join(source, "markdown/Elements.ts")],
    outfile: Path.join(outDir, "widget-markdown.js"),
    format: "esm"
  })
  return [script, markdown].flatMap(({ metafile }) => filesOfMetafile(metafile))
}

/** Compresses text files once, at build time. */
const compress = (folder) => {
  for (const file of filesBelow(folder)) {
    if (/\.(?:js|css|html|json|svg)$/.test(file)) {
      const bytes = Fs.readFileSync(file)
      Fs.writeFileSync(`${file}.gz`, gzipSync(bytes, { level: 9 }))
      // At the best quality by default. Browsers accept it over https and from this machine.
      Fs.writeFileSync(`${file}.br`, brotliCompressSync(bytes))
    }
  }
}

export const buildUi = async () => {
  if (!isUiStale()) return
  const hash = inputHash()
  const tempFolder = `${target}.${process.pid}`
  try {
    const files = [
      ...(await dashboard(tempFolder)),
      ...(await widget(tempFolder)),
      ...(await buildDocs(tempFolder))
    ]
    compress(tempFolder)
    // The old folder is removed only after the new one is complete.
    Fs.rmSync(target, { recursive: true, force: true })
    Fs.renameSync(tempFolder, target)
    replaceFile(recordFile, JSON.stringify({ hash, packages: packagesOf(root, files) }))
  } finally {
    Fs.rmSync(tempFolder, { recursive: true, force: true })
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await buildUi()
