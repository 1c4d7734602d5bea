/**
 * Writes the software bill of materials (CycloneDX, JSON) of what is shipped, as `npm sbom` describes the packages:
 *
 *   node scripts/sbom.mjs                     of the package, to dist/sbom.cdx.json
 *   node scripts/sbom.mjs --image DPKG FILE   of an image, whose base image has its packages in the folder DPKG
 *
 * Packages in the bundles of dist/ are dependencies of development, so npm alone would not list them. It lists the
 * packages that the builds have recorded, and those that are installed beside dist/. For the folder of an image build,
 * run it before scripts/service-manifest.mjs.
 */
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { parseArgs } from "node:util"
import { dist, replaceFile, root } from "./seed.mjs"

const json = (...file) => JSON.parse(Fs.readFileSync(Path.join(...file), "utf8"))
const manifest = json(root, "package.json")

const refOf = ({ name, version }) => `${name}@${version}`

/** References of the packages in the bundles. */
const bundled = () =>
  new Set(
    ["build.json", "ui.json"].flatMap((record) =>
      json(dist, record).packages.map((folder) => refOf(json(root, folder, "package.json")))
    )
  )

/** Packages that an installation has beside the bundles. An image has the optional ones, but Effect's are bundled. */
const installedNames = (inImage) => [
  ...Object.keys(manifest.dependencies),
  ...(inImage
    ? Object.keys(manifest.peerDependencies).filter(
        (name) => name !== "effect" && !name.startsWith("@effect/")
      )
    : [])
]

/** References of `names` and of all that they need. */
const closure = (bom, names) => {
  const needs = new Map(bom.dependencies.map(({ dependsOn = [], ref }) => [ref, dependsOn]))
  const nameOf = new Map(bom.components.map((component) => [component["bom-ref"], component.name]))
  const pending = (needs.get(bom.metadata.component["bom-ref"]) ?? []).filter((ref) =>
    names.includes(nameOf.get(ref))
  )
  const found = new Set(pending)
  for (const ref of pending)
    for (const next of needs.get(ref) ?? []) {
      if (!found.has(next)) pending.push(next)
      found.add(next)
    }
  return found
}

/** Components for the records of dpkg below `folder`: one file, or a file for each package (status.d). */
const debianComponents = (folder) => {
  const files = ["status", "status.d"]
    .map((name) => Path.join(folder, name))
    .filter((name) => Fs.existsSync(name))
    .flatMap((name) =>
      Fs.statSync(name).isDirectory() ? Fs.readdirSync(name).map((file) => Path.join(name, file)) : [name]
    )
    .filter((name) => !name.endsWith(".md5sums"))
  const paragraphs = files.flatMap((file) => Fs.readFileSync(file, "utf8").split(/\n{2,}/u))
  return paragraphs.flatMap((text) => {
    const field = (name) => new RegExp(`^${name}: (.+)$`, "mu").exec(text)?.[1]
    const [name, version, architecture] = ["Package", "Version", "Architecture"].map(field)
    if (name === undefined || version === undefined) return []
    const purl = `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${architecture}`
    return [{ "bom-ref": purl, type: "library", name, version, scope: "required", purl }]
  })
}

const nodeComponent = () => {
  const version = process.versions.node
  return {
    "bom-ref": `node@${version}`,
    type: "application",
    name: "node",
    version,
    scope: "required",
    purl: `pkg:generic/node@${version}`,
    cpe: `cpe:2.3:a:nodejs:node.js:${version}:*:*:*:*:*:*:*`,
    licenses: [{ license: { id: "MIT" } }]
  }
}

const property = (name) => ({ name, value: "true" })

const { positionals, values } = parseArgs({ allowPositionals: true, options: { image: { type: "string" } } })
const inImage = values.image !== undefined
const [file = Path.join(dist, "sbom.cdx.json")] = positionals

const allPackages = JSON.parse(
  execFileSync("npm", ["sbom", "--sbom-format=cyclonedx", "--package-lock-only"], {
    cwd: root,
    encoding: "utf8",
    maxBuffer: 256 * 1_048_576
  })
)
const inBundle = bundled()
const installed = closure(allPackages, installedNames(inImage))
const shipped = allPackages.components
  .filter((component) => inBundle.has(component["bom-ref"]) || installed.has(component["bom-ref"]))
  .map((component) => ({
    ...component,
    // npm names a package by its alias, if it has one.
    name: component["bom-ref"].replace(/@[^@]+$/u, ""),
    properties: inBundle.has(component["bom-ref"]) ? [property("cdx:npm:package:bundled")] : []
  }))
const missing = [...inBundle].filter((ref) => !shipped.some((component) => component["bom-ref"] === ref))
if (missing.length > 0) throw new Error(`npm does not know what is in the bundles: ${missing.join(", ")}`)
const system = inImage ? [nodeComponent(), ...debianComponents(values.image)] : []
if (inImage && system.length === 1) throw new Error(`No packages of the base image in ${values.image}.`)

const { component } = allPackages.metadata
const listed = new Set([component, ...shipped].map((one) => one["bom-ref"]))
const dependencies = allPackages.dependencies
  .filter(({ ref }) => listed.has(ref))
  .map(({ dependsOn = [], ref }) => ({ ref, dependsOn: dependsOn.filter((one) => listed.has(one)) }))
const bom = {
  ...allPackages,
  metadata: {
    ...allPackages.metadata,
    lifecycles: [{ phase: "build" }],
    component: { ...component, name: manifest.name, type: inImage ? "container" : "application" }
  },
  components: [...shipped, ...system],
  dependencies
}
replaceFile(file, `${JSON.stringify(bom, null, 2)}\n`)
process.stdout.write(
  `${Path.relative(root, file)}: ${inBundle.size} bundled, ${shipped.length - inBundle.size} installed, ${system.length} of the system\n`
)
