/**
 * Creates dist/seed.tgz from migrations/ and the installed PGlite, unless it is up to date. dist/seed.json records
 * its inputs.
 */
import { createHash } from "node:crypto"
import * as Fs from "node:fs"
import { createRequire } from "node:module"
import * as Path from "node:path"
import { pathToFileURL } from "node:url"

export const root = Path.resolve(import.meta.dirname, "..")
export const dist = Path.join(root, "dist")
const migrations = Path.join(root, "migrations")

const pgliteVersion = () => {
  const entry = createRequire(import.meta.url).resolve("@electric-sql/pglite")
  return JSON.parse(Fs.readFileSync(Path.join(entry, "../../package.json"), "utf8")).version
}

/** The inputs of a seed archive, in one string. */
export const seedHash = () => {
  const hash = createHash("sha256").update(`2 pglite ${pgliteVersion()}\n`)
  for (const name of Fs.readdirSync(migrations)
    .filter((name) => name.endsWith(".sql"))
    .sort()) {
    hash.update(`${name}\n`).update(Fs.readFileSync(Path.join(migrations, name)))
  }
  return hash.digest("hex")
}

/** Replaces a file atomically, so that a concurrent reader gets the old or the new one. */
export const replaceFile = (path, contents) => {
  Fs.mkdirSync(Path.dirname(path), { recursive: true })
  const temporary = `${path}.${process.pid}`
  Fs.writeFileSync(temporary, contents)
  Fs.renameSync(temporary, path)
}

/** The path of the archive if it is up to date. */
export const currentSeed = () => {
  const path = Path.join(dist, "seed.tgz")
  try {
    const { hash } = JSON.parse(Fs.readFileSync(Path.join(dist, "seed.json"), "utf8"))
    return hash === seedHash() && Fs.existsSync(path) ? path : undefined
  } catch {
    return undefined
  }
}

export const ensureSeed = async () => {
  if (currentSeed() !== undefined) return
  const hash = seedHash()
  const { build } = await import("esbuild")
  const seedProgram = Path.join(dist, `seed-maker.${process.pid}.mjs`)
  try {
    await build({
      entryPoints: [Path.join(root, "src/store/database/Seed.ts")],
      outfile: seedProgram,
      bundle: true,
      platform: "node",
      format: "esm",
      target: "node20",
      packages: "external",
      logLevel: "error"
    })
    const { seed } = await import(pathToFileURL(seedProgram).href)
    replaceFile(Path.join(dist, "seed.tgz"), await seed(migrations))
    replaceFile(Path.join(dist, "seed.json"), JSON.stringify({ hash }))
  } finally {
    Fs.rmSync(seedProgram, { force: true })
  }
}
