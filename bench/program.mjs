/** The TypeScript of a benchmark, bundled into `dist` and imported from there. */
import * as path from "node:path"
import { pathToFileURL } from "node:url"
import { build } from "esbuild"
import { watOfEsbuild } from "../scripts/wat.mjs"

const root = path.resolve(import.meta.dirname, "..")

/** The address of the thread that embeds; `buildAll` of scripts/build.mjs makes it. */
export const embedWorker = pathToFileURL(path.join(root, "dist/workers/embed.js"))

/** The module at a path below `bench`, such as `retrieval/Evaluate.ts`. */
export const importProgram = async (entry) => {
  const outfile = path.join(root, `dist/bench-${path.dirname(entry)}.mjs`)
  await build({
    entryPoints: [path.join(import.meta.dirname, entry)],
    outfile,
    bundle: true,
    packages: "external",
    plugins: [watOfEsbuild],
    platform: "node",
    target: "node20",
    format: "esm",
    logLevel: "error"
  })
  return import(pathToFileURL(outfile).href)
}
