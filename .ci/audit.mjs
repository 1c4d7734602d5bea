/**
 * Requirements on the project's dependencies, read only from package-lock.json: `problems` lists the violations. Run
 * as a program, it also asks the registry for known vulnerabilities, and says so if the registry does not support
 * that.
 */
import { spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { pathToFileURL } from "node:url"

const sha512 = /^sha512-[A-Za-z0-9+/]{86}==$/
const registry = "https://registry.npmjs.org/"

/** Permissive licences. OFL-1.1 is for fonts, and each file of one says so in its metadata. */
const permissive = ["0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MIT-0", "OFL-1.1"]
/** Additional licences for tools that are not shipped. */
const forTools = [
  "(AFL-2.1 OR BSD-3-Clause)",
  "BlueOak-1.0.0",
  "CC-BY-4.0",
  "MIT AND ISC AND BSD-3-Clause",
  "MPL-2.0",
  "PSF-2.0",
  "Python-2.0",
  "Unlicense"
]

/** Tools whose manifest has no licence in the current format; their files say MIT. */
const unnamed = ["busboy", "dicer", "humanize-number", "only", "streamsearch"]

/** Packages with install scripts. Each was reviewed, and Spoke needs none of them. */
const scripted = ["@parcel/watcher", "esbuild", "msgpackr-extract", "tesseract.js"]

/** Only Node's cryptography is used. A package for signatures, ciphers or tokens would be another one to trust. */
const cryptography =
  /(?:^|[/-])(?:bcrypt|crypto|elliptic|jose|jsonwebtoken|libsodium|node-forge|node-rsa|openpgp|scrypt|sodium|tweetnacl)(?:$|[.-])|^@noble\//

const nameOf = (path) => path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length)

/** Builds for other systems are not checked: npm only writes their names, and never fetches them here. */
const isForeign = ({ cpu, integrity, license, optional, os }) =>
  optional === true && (os ?? cpu) !== undefined && integrity === undefined && license === undefined

const root = Path.resolve(import.meta.dirname, "..")

/** Packages that the code of the service imports: most of them become part of what is built, and are no dependencies of it. */
export const imported = () => {
  const src = Path.join(root, "src")
  const files = Fs.readdirSync(src, { recursive: true, encoding: "utf8" }).filter(
    (name) => name.endsWith(".ts") && !name.startsWith(`ui${Path.sep}`)
  )
  const names = files.flatMap((name) =>
    [
      ...Fs.readFileSync(Path.join(src, name), "utf8").matchAll(
        /(?:from|import\()\s*"((?:@[\w.-]+\/)?[\w.-]+)/gu
      )
    ].map(([, found]) => found)
  )
  return [...new Set(names)].filter((name) => !name.startsWith("."))
}

/** Where `name` leads from the package at `from`: to the nearest folder above that has it. */
const resolved = (packages, from, name) => {
  const path = `${from === "" ? "" : `${from}/`}node_modules/${name}`
  if (packages[path] !== undefined) return path
  if (from === "") return undefined
  const above = from.slice(0, Math.max(0, from.lastIndexOf("node_modules/") - 1))
  return resolved(packages, above, name)
}

/** Paths in the lock of `names` and of what they need. */
export const shippedOf = ({ packages }, names) => {
  const found = new Set()
  const add = (from, name) => {
    const path = resolved(packages, from, name)
    if (path === undefined || found.has(path)) return
    found.add(path)
    const { dependencies, optionalDependencies } = packages[path]
    for (const each of Object.keys({ ...dependencies, ...optionalDependencies })) add(path, each)
  }
  for (const name of names) add("", name)
  return found
}

/** `isTool`: nothing of it reaches who uses Spoke. */
const ofPackage = (path, entry, isTool) => {
  const name = nameOf(path)
  if (isForeign(entry)) return []
  const allowed = isTool ? [...permissive, ...forTools] : permissive
  return [
    entry.link === true ? "is a link" : null,
    entry.resolved === undefined || entry.resolved.startsWith(registry) ? null : "comes from elsewhere",
    sha512.test(entry.integrity ?? "") ? null : "has no sha512 integrity",
    entry.hasInstallScript !== true || scripted.includes(name) ? null : "runs a script when it is installed",
    entry.deprecated === undefined || isTool ? null : "is deprecated",
    allowed.includes(entry.license) || (isTool && unnamed.includes(name))
      ? null
      : `is under the licence ${entry.license ?? "that it does not name"}`,
    isTool || !cryptography.test(name) ? null : "is cryptography that Node has"
  ]
    .filter((found) => found !== null)
    .map((found) => `${path} ${found}`)
}

/** Ranges that npm would resolve outside the registry. */
const elsewhere = /^(?:git|https?|file|link|github)\b|^[\w-]+\/[\w.-]+/

const ofRanges = (manifest) =>
  ["dependencies", "devDependencies", "optionalDependencies"].flatMap((kind) =>
    Object.entries(manifest[kind] ?? {})
      .filter(([, range]) => elsewhere.test(range))
      .map(([name]) => `package.json: ${name} does not come from the registry`)
  )

/** What is wrong with `lock` and `manifest`, the contents of package-lock.json and package.json, where `names` are imported. */
export const problems = (lock, manifest, names) => {
  const shipped = shippedOf(lock, [...names, ...Object.keys(manifest.peerDependencies ?? {})])
  const isTool = (path, { dev }) => dev === true && !shipped.has(path)
  return [
    ...(lock.lockfileVersion === 3 ? [] : ["package-lock.json is not of version 3"]),
    ...Object.entries(lock.packages)
      .filter(([path]) => path !== "")
      .flatMap(([path, entry]) => ofPackage(path, entry, isTool(path, entry))),
    ...ofRanges(manifest)
  ]
}

const read = (name) => JSON.parse(Fs.readFileSync(Path.join(root, name), "utf8"))

/** The answer of `npm audit`: how much it found in the packages at the paths `shipped`, or that it could not be asked. */
export const advisories = (stdout, shipped) => {
  const found = (() => {
    try {
      return JSON.parse(stdout)
    } catch {
      return {}
    }
  })()
  if (found.metadata?.vulnerabilities === undefined) return { asked: false, serious: 0 }
  const serious = Object.values(found.vulnerabilities ?? {}).filter(
    ({ nodes, severity }) =>
      (severity === "high" || severity === "critical") && nodes.some((path) => shipped.has(path))
  )
  return { asked: true, serious: serious.length }
}

const tell = (text) => process.stderr.write(`${text}\n`)

const main = () => {
  const lock = read("package-lock.json")
  const manifest = read("package.json")
  const names = imported()
  const found = problems(lock, manifest, names)
  for (const problem of found) tell(problem)
  const { stdout } = spawnSync("npm", ["audit", "--audit-level=high", "--json"], {
    cwd: root,
    encoding: "utf8",
    timeout: 60_000
  })
  const { asked, serious } = advisories(
    stdout ?? "",
    shippedOf(lock, [...names, ...Object.keys(manifest.dependencies)])
  )
  if (!asked) tell("SKIPPED: known vulnerabilities: the registry does not answer `npm audit` here")
  if (serious > 0) {
    tell(stdout)
    tell(`${serious} packages have a vulnerability known as high or critical`)
  }
  if (found.length > 0 || serious > 0) process.exitCode = 1
  else tell("The packages are what they have to be.")
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) main()
