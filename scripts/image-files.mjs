/**
 * Removes files that the service never reads from the folder of an image build, after `npm prune`: never from a checkout.
 * This makes the image a third smaller.
 */
import * as Fs from "node:fs"
import * as Path from "node:path"
import { dist, root } from "./seed.mjs"

if (Fs.existsSync(Path.join(root, ".git"))) throw new Error("This is for the folder of an image build.")

/** Paths below node_modules. */
const unread = [
  // Source maps and declarations.
  /\.(?:map|d\.[cm]?ts)$/u,
  // Text recognition loads a core as a file of its own, not as a script, and current processors all have SIMD.
  /^tesseract\.js-core\/.*\.wasm\.js$/u,
  /^tesseract\.js-core\/tesseract-core(?:-lstm)?\.(?:js|wasm)$/u,
  // It uses the small model: src/workers/recognize.ts.
  /^@tesseract\.js-data\/eng\/4\.0\.0\//u,
  // For browsers.
  /^tesseract\.js\/(?:dist|docs|examples)\//u,
  // The database's modules for CommonJS.
  /^@electric-sql\/.*\.cjs$/u
]

const modules = Path.join(root, "node_modules")
for (const file of Fs.readdirSync(modules, { recursive: true, encoding: "utf8" })) {
  const path = Path.join(modules, file)
  if (unread.some((pattern) => pattern.test(file)) && Fs.lstatSync(path).isFile()) Fs.rmSync(path)
}

/** Entries for programs that embed the service. What they share with the server stays. */
for (const name of [
  "index.js",
  "effect.js",
  "express.js",
  "fastify.js",
  "hono.js",
  "next.js",
  "client.js",
  "client"
])
  Fs.rmSync(Path.join(dist, name), { recursive: true })
/** Pictures of guides: the application has its own copies of those that it shows. */
for (const name of Fs.readdirSync(Path.join(root, "docs"), { recursive: true, encoding: "utf8" }))
  if (name.endsWith(".webp")) Fs.rmSync(Path.join(root, "docs", name))
