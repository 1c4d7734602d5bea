/**
 * Bundles src/ into dist/ and creates the seed archive. If nothing has changed, it takes a few milliseconds and does
 * nothing.
 */
import { createHash } from "node:crypto"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { fileURLToPath } from "node:url"
import { filesOfMetafile, packagesOf } from "./bundled.mjs"
import { dist, ensureSeed, replaceFile, root } from "./seed.mjs"
import { buildUi } from "./ui.mjs"
import { watOfEsbuild } from "./wat.mjs"

const source = Path.join(root, "src")
/** Built by scripts/ui.mjs. */
const ui = Path.join(source, "ui") + Path.sep

const manifest = JSON.parse(Fs.readFileSync(Path.join(root, "package.json"), "utf8"))

/** Optional packages that the host installs. */
const peers = Object.keys(manifest.peerDependencies)

/** Packages of Effect. Values of two copies of them cannot be mixed. */
const effectPackages = peers.filter((name) => name === "effect" || name.startsWith("@effect/"))

/** Packages outside the bundle: dependencies, peers, and optional packages of other packages. */
const external = [
  ...Object.keys(manifest.dependencies),
  ...peers.filter((name) => !effectPackages.includes(name)),
  "@parcel/watcher",
  "bufferutil",
  "canvas",
  "msgpackr-extract",
  "pg-native",
  "utf-8-validate"
]

/** CommonJS packages in an ES module still call `require` for Node's own modules. */
const banner = `import { createRequire as createRequireOfBundle } from "node:module"
const require = createRequireOfBundle(import.meta.url)`

const selectors = fileURLToPath(new URL("selectors.mjs", import.meta.url))
const assembler = fileURLToPath(new URL("wat.mjs", import.meta.url))
const recorder = fileURLToPath(new URL("bundled.mjs", import.meta.url))

/** Replaces linkedom's `css-select` with {@link selectors}. */
const cachedSelectors = {
  name: "cached-selectors",
  setup: ({ onResolve }) =>
    onResolve({ filter: /^css-select$/ }, ({ importer }) =>
      /[\\/]linkedom[\\/]/.test(importer) ? { path: selectors } : undefined
    )
}

const filesBelow = (folder) =>
  Fs.existsSync(folder)
    ? Fs.readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => Path.join(entry.parentPath, entry.name))
        .sort()
    : []

/** `npm run build -- --maps` writes source maps for a debugger. The package has none. */
const withSourceMaps = process.argv.includes("--maps")

const inputHash = () => {
  const hash = createHash("sha256").update(String(withSourceMaps))
  const tools = [
    fileURLToPath(import.meta.url),
    selectors,
    assembler,
    recorder,
    Path.join(root, "package-lock.json")
  ]
  const sources = filesBelow(source).filter((file) => !file.startsWith(ui))
  for (const file of [...tools, ...sources]) {
    hash.update(`${Path.relative(root, file)}\n`).update(Fs.readFileSync(file))
  }
  return hash.digest("hex")
}

const workers = () => filesBelow(Path.join(source, "workers")).filter((file) => file.endsWith(".ts"))

const programs = ["main.ts", "index.ts", "express.ts", "fastify.ts", "hono.ts", "next.ts"].map((name) =>
  Path.join(source, name)
)

/** `spoke/effect`, which shares Effect's packages with the host. */
const effectEntries = [Path.join(source, "effect.ts")]

/** The client keeps its imports, so that the host's bundler can drop what it does not use. */
const clients = ["client.ts", "client/Effect.ts"].map((name) => Path.join(source, name))

const recordFile = Path.join(dist, "build.json")

/** Inputs and outputs of the last complete build, and the packages in them. */
const lastBuild = () => {
  try {
    return JSON.parse(Fs.readFileSync(recordFile, "utf8"))
  } catch {
    return { hash: "", files: [] }
  }
}

const bundle = async (entryPoints) => {
  const hash = inputHash()
  const before = lastBuild()
  if (before.hash === hash && before.files.every((name) => Fs.existsSync(Path.join(dist, name)))) return
  const { build } = await import("esbuild")
  const common = {
    outbase: source,
    outdir: dist,
    bundle: true,
    format: "esm",
    target: "node20",
    sourcemap: withSourceMaps,
    plugins: [watOfEsbuild],
    write: false,
    metafile: true,
    logLevel: "warning"
  }
  const forNode = {
    ...common,
    // Beside the entries, so that `import.meta.dirname` is dist/ in all of them (but dist/workers/ in a worker).
    chunkNames: "chunk-[hash]",
    splitting: true,
    platform: "node",
    plugins: [...common.plugins, cachedSelectors],
    banner: { js: banner },
    // A `require` of a missing package is in a try block of its caller.
    logOverride: { "require-resolve-not-external": "silent" }
  }
  const builds = [
    build({ ...forNode, entryPoints, external }),
    build({ ...forNode, entryPoints: effectEntries, external: [...external, ...effectPackages] }),
    build({
      ...common,
      entryPoints: clients,
      platform: "browser",
      packages: "external",
      splitting: true,
      chunkNames: "client/chunk-[hash]"
    })
  ]
  const built = await Promise.all(builds)
  const outputFiles = built.flatMap((one) => one.outputFiles)
  const packages = packagesOf(
    root,
    built.flatMap(({ metafile }) => filesOfMetafile(metafile))
  )
  // Chunks are written before the files that import them: an entry that is read meanwhile finds its imports.
  const written = outputFiles.toSorted(
    (a, b) => Number(b.path.includes("chunk-")) - Number(a.path.includes("chunk-"))
  )
  for (const { path, contents } of written) replaceFile(path, contents)
  const files = written.map(({ path }) => Path.relative(dist, path))
  replaceFile(recordFile, JSON.stringify({ hash, files, packages }))
  for (const name of before.files) {
    if (!files.includes(name)) Fs.rmSync(Path.join(dist, name), { force: true })
  }
}

/** True when {@link buildServer} would have something to do. */
export const isStale = () => lastBuild().hash !== inputHash()

/** Builds what the server needs: programs, workers and the seed archive, each unless it is up to date. */
export const buildServer = async () => {
  await bundle([...programs, ...workers()])
  await ensureSeed()
}

/** Everything, dashboard and widget included. */
export const buildAll = async () => {
  await buildServer()
  await buildUi()
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await buildAll()
