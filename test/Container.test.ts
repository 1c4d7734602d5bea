/** Checks of the container recipe that need no container. */
import * as fs from "node:fs"
import * as path from "node:path"
import { describe, expect, it } from "vitest"
import { parse } from "yaml"
import { Variables } from "../src/app/config/Config.ts"
import { fileVariables } from "../src/app/config/SecretFiles.ts"

const root = path.join(import.meta.dirname, "..")
const read = (name: string) => fs.readFileSync(path.join(root, name), "utf8")

const dockerfile = read("Dockerfile")
const copies = Array.from(dockerfile.matchAll(/^COPY (--from=build )?(.+)$/gmu), ([, from, words = ""]) => ({
  built: from !== undefined,
  sources: words.split(" ").slice(0, -1)
}))
const sources = (built: boolean) =>
  copies.filter((copy) => copy.built === built).flatMap((copy) => copy.sources)

describe("The Dockerfile", () => {
  it("copies what exists, and .dockerignore lets exactly that through", () => {
    const copied = sources(false).toSorted()
    expect(copied.filter((name) => !fs.existsSync(path.join(root, name)))).toEqual([])
    const passed = read(".dockerignore")
      .split("\n")
      .filter((line) => line.startsWith("!"))
    expect(passed.map((line) => line.slice(1)).toSorted()).toEqual(copied)
  })

  it("brings everything along that the package has", () => {
    const given: ReadonlyArray<string> = JSON.parse(read("package.json")).files
    // What the package leaves out may be in the image.
    const files = given.filter((name) => !name.startsWith("!"))
    const image = sources(true).map((name) => name.replace("/build/", ""))
    expect([...files, "package.json", "node_modules"].filter((name) => !image.includes(name))).toEqual([])
  })

  it("runs as somebody, calls no shell, and ends on SIGTERM", () => {
    const [, last = ""] = dockerfile.split(/^FROM [^\n]+slim$/mu)
    expect(last).toMatch(/^USER node$/mu)
    expect(last).toMatch(/^STOPSIGNAL SIGTERM$/mu)
    for (const word of ["ENTRYPOINT", "CMD"]) expect(last).toMatch(new RegExp(`^ *${word} \\[`, "mu"))
  })
})

describe("compose.yaml", () => {
  const { secrets, services, volumes } = parse(read("compose.yaml"), { merge: true })

  it("names variables of Spoke alone, and secrets and volumes that it declares", () => {
    for (const name of ["api", "worker"]) {
      const service = services[name]
      const known = [...Object.keys(Variables.fields), ...fileVariables]
      expect(Object.keys(service.environment).filter((variable) => !known.includes(variable))).toEqual([])
      expect(service).toMatchObject({ init: true, read_only: true, cap_drop: ["ALL"], tmpfs: ["/tmp"] })
      for (const secret of service.secrets) expect(Object.keys(secrets)).toContain(secret)
      for (const volume of service.volumes) expect(Object.keys(volumes)).toContain(volume.split(":")[0])
      for (const other of Object.keys(service.depends_on)) expect(Object.keys(services)).toContain(other)
    }
    expect(services.redis.command).toContain("noeviction")
  })

  it("gives every secret by file", () => {
    const given: Readonly<Record<string, string>> = services.api.environment
    const files = Object.entries(given).filter(([name]) => name.endsWith("_FILE"))
    expect(files.map(([, file]) => path.basename(file)).toSorted()).toEqual(services.api.secrets.toSorted())
  })
})

describe("The template of the service", () => {
  const folder = "create-spoke/templates"
  const recipe = read(`${folder}/service/Dockerfile`)

  it("copies what a new project has, and starts the program of the package", () => {
    const copied = Array.from(recipe.matchAll(/^COPY (.+)$/gmu), ([, words = ""]) =>
      words.split(" ").slice(0, -1)
    )
    const there = (name: string) =>
      ["service", "shared"].some((part) => fs.existsSync(path.join(root, folder, part, name)))
    // A file with * may be missing: npm install makes it.
    expect(copied.flat().filter((name) => !name.endsWith("*") && !there(name))).toEqual([])
    const ignored = read(`${folder}/service/.dockerignore`).trim().split("\n")
    expect(copied.flat().filter((name) => ignored.includes(name))).toEqual([])
    const { bin }: { readonly bin: Readonly<Record<string, string>> } = JSON.parse(read("package.json"))
    const [, program = ""] = /^ENTRYPOINT \["node", "node_modules\/spoke\/(.+)"\]$/mu.exec(recipe) ?? []
    expect(Object.values(bin).map((file) => path.normalize(file))).toContain(path.normalize(program))
  })

  it("runs as somebody, and names variables of Spoke alone", () => {
    expect(recipe).toMatch(/^USER node$/mu)
    const { services, volumes } = parse(read(`${folder}/service/compose.yaml`))
    const known = [...Object.keys(Variables.fields), ...fileVariables]
    expect(Object.keys(services.spoke.environment).filter((name) => !known.includes(name))).toEqual([])
    expect(services.spoke).toMatchObject({ init: true, read_only: true, cap_drop: ["ALL"], tmpfs: ["/tmp"] })
    expect(Object.keys(volumes)).toEqual(services.spoke.volumes.map((volume: string) => volume.split(":")[0]))
  })
})
