/**
 * Rewrites package.json for an install of the service, which has every optional package: `npm prune --omit=dev` then
 * keeps them. Packages of Effect are in the bundle. For the folder of an image build, never for a checkout.
 */
import * as Fs from "node:fs"
import * as Path from "node:path"
import { root } from "./seed.mjs"

const file = Path.join(root, "package.json")
const {
  devDependencies,
  peerDependencies,
  peerDependenciesMeta: _,
  ...rest
} = JSON.parse(Fs.readFileSync(file, "utf8"))
const optional = Object.keys(peerDependencies)
  .filter((name) => name !== "effect" && !name.startsWith("@effect/"))
  .map((name) => [name, devDependencies[name]])
const manifest = { ...rest, dependencies: { ...rest.dependencies, ...Object.fromEntries(optional) } }
Fs.writeFileSync(file, `${JSON.stringify(manifest, null, 2)}\n`)
