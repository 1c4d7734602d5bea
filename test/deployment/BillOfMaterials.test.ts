/** The bill of materials names what is shipped: what is in the bundles, what is installed beside them, what an image has besides. */
import { spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { pathToFileURL } from "node:url"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { read, root, toolPackage, tools } from "./Tools.ts"

const folder = Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-bom-"))
const manifest = JSON.parse(read("package.json"))

interface Component {
  readonly "bom-ref": string
  readonly name: string
  readonly version: string
  readonly purl: string
  readonly cpe?: string
  readonly hashes?: ReadonlyArray<{ readonly alg: string; readonly content: string }>
  readonly licenses?: ReadonlyArray<object>
  readonly properties?: ReadonlyArray<{ readonly name: string; readonly value: string }>
}

const written = (...args: ReadonlyArray<string>) => {
  const file = Path.join(folder, `${args.length}.json`)
  const { status, stderr } = spawnSync(
    process.execPath,
    [Path.join(root, "scripts/sbom.mjs"), ...args, file],
    {
      encoding: "utf8"
    }
  )
  expect([status, stderr]).toEqual([0, ""])
  return JSON.parse(Fs.readFileSync(file, "utf8"))
}

const isBundled = ({ properties = [] }: Component) =>
  properties.some(({ name, value }) => name === "cdx:npm:package:bundled" && value === "true")
const namesOf = (components: ReadonlyArray<Component>) => components.map(({ name }) => name)

/** Valid by the strict schema of CycloneDX. */
const problemsOf = async (bom: object): Promise<unknown> => {
  const { Spec, Validation } = toolPackage("@cyclonedx/cyclonedx-library")
  return new Validation.JsonStrictValidator(Spec.Version.v1dot5).validate(JSON.stringify(bom))
}

afterAll(() => Fs.rmSync(folder, { recursive: true, force: true }))

describe("The bill of materials of the package", () => {
  // oxlint-disable-next-line typescript/no-explicit-any
  let bom: any
  let components: ReadonlyArray<Component> = []

  beforeAll(async () => {
    const { buildAll } = await import(pathToFileURL(Path.join(root, "scripts/build.mjs")).href)
    await buildAll()
    bom = written()
    components = bom.components
  }, 300_000)

  it("names every package that the sources import and that is in the bundles, though npm takes it for a tool", () => {
    const sources = Fs.readdirSync(Path.join(root, "src"), { recursive: true, encoding: "utf8" })
      .filter((name) => /\.tsx?$/u.test(name) && !name.endsWith("vite.config.ts"))
      .map((name) => read("src", name))
    const imported = new Set(
      sources.flatMap((text) =>
        Array.from(
          text.matchAll(/^(?:import|export) (?!type\b)[^"]*?from "((?:@[\w.-]+\/)?[\w.-]+)(?:\/[^"]*)?"/gmu),
          ([, name = ""]) => name
        )
      )
    )
    // Of an alias, the package that it stands for.
    const packages = Object.entries<string>(manifest.devDependencies)
      .filter(([name]) => imported.has(name))
      .map(([name, version]) => /^npm:(.+)@/u.exec(version)?.[1] ?? name)
    expect(packages.length).toBeGreaterThan(25)
    const bundled = namesOf(components.filter(isBundled))
    const peers = Object.keys(manifest.peerDependencies)
    expect(packages.filter((name) => !bundled.includes(name) && !peers.includes(name))).toEqual([])
    expect(bundled).toEqual(expect.arrayContaining(["effect", "pg", "preact", "@preact/compat", "undici"]))
  })

  it("names what is installed beside the bundles, and no tool", () => {
    const installed = namesOf(components.filter((one) => !isBundled(one)))
    for (const name of Object.keys(manifest.dependencies)) expect(installed).toContain(name)
    const tool = ["typescript", "vitest", "esbuild", "vite", "oxlint", "playwright-core"]
    expect(namesOf(components).filter((name) => tool.includes(name))).toEqual([])
  })

  it("has an address, a version, a hash and a licence of each, once, and every reference leads somewhere", () => {
    const refs = components.map((component) => component["bom-ref"])
    expect(new Set(refs).size).toBe(refs.length)
    for (const { hashes = [], licenses = [], name, purl, version } of components) {
      expect([name, purl]).toEqual([name, `pkg:npm/${name.replace("@", "%40")}@${version}`])
      expect([name, hashes[0]?.alg, licenses.length]).toEqual([name, "SHA-512", 1])
    }
    const all = new Set([bom.metadata.component["bom-ref"], ...refs])
    for (const { dependsOn, ref } of bom.dependencies)
      expect([ref, ...dependsOn].filter((one: string) => !all.has(one))).toEqual([])
    expect(bom.metadata.component).toMatchObject({ name: "spoke", version: manifest.version })
  })

  it("is in the package", () => {
    expect(manifest.files).toContain("dist")
    expect(manifest.scripts.prepack).toMatch(/node scripts\/sbom\.mjs$/u)
  })

  it.skipIf(tools === undefined)("is what CycloneDX' schema asks for", async () => {
    expect(await problemsOf(bom)).toBeNull()
    expect(await problemsOf({ ...bom, components: [{ name: 1 }] })).not.toBeNull()
  })
})

describe("The bill of materials of an image", () => {
  const base = Path.join(folder, "dpkg")
  const record = (name: string, version: string) =>
    `Package: ${name}\nStatus: install ok installed\nArchitecture: amd64\nVersion: ${version}\nDescription: a\n b\n`

  it("has Node, the packages of the base image and the optional ones, too", async () => {
    Fs.mkdirSync(Path.join(base, "status.d"), { recursive: true })
    Fs.writeFileSync(
      Path.join(base, "status"),
      [record("libc6", "2.36-9+deb12u1"), record("tzdata", "2026a-0")].join("\n")
    )
    Fs.writeFileSync(Path.join(base, "status.d/libssl3"), record("libssl3", "3.0.1"))
    Fs.writeFileSync(Path.join(base, "status.d/libssl3.md5sums"), "0  usr/lib/libssl.so.3\n")
    const bom = written("--image", base)
    const components: ReadonlyArray<Component> = bom.components
    const purls = components.map(({ purl }) => purl)
    expect(purls.filter((purl) => purl.startsWith("pkg:deb/"))).toEqual([
      "pkg:deb/debian/libc6@2.36-9%2Bdeb12u1?arch=amd64",
      "pkg:deb/debian/tzdata@2026a-0?arch=amd64",
      "pkg:deb/debian/libssl3@3.0.1?arch=amd64"
    ])
    expect(components.find(({ name }) => name === "node")?.cpe).toContain(
      `:node.js:${process.versions.node}:`
    )
    expect(namesOf(components)).toEqual(expect.arrayContaining(["ioredis", "tesseract.js-core", "unpdf"]))
    if (tools !== undefined) expect(await problemsOf(bom)).toBeNull()
  })

  it("is not made for a base image that does not tell its packages", () => {
    const empty = Path.join(folder, "empty")
    Fs.mkdirSync(empty)
    const { status, stderr } = spawnSync(
      process.execPath,
      [Path.join(root, "scripts/sbom.mjs"), "--image", empty, Path.join(folder, "none.json")],
      { encoding: "utf8" }
    )
    expect(status).toBe(1)
    expect(stderr).toContain("No packages of the base image")
  })
})
