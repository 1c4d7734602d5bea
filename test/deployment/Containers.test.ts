/** Checks of the container recipe that need no container. */
import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { parse } from "yaml"
import { Variables } from "../../src/app/config/Config.ts"
import { fileVariables } from "../../src/app/config/SecretFiles.ts"
import { longestDrainSeconds, read, root } from "./Tools.ts"

const dockerfile = read("Dockerfile")
/** What is copied from the folder of the build, or of a stage. */
const sources = (stage: string | undefined) =>
  Array.from(dockerfile.matchAll(/^COPY (?:--from=(\w+) )?(?:--chown=\S+ )?(.+)$/gmu))
    .filter(([, from]) => from === stage)
    .flatMap(([, , words = ""]) => words.split(" ").slice(0, -1))
/** The text of the last stage. */
const last = dockerfile.split(/^FROM /mu).at(-1) ?? ""

describe("The Dockerfile", () => {
  it("copies what exists, and .dockerignore lets exactly that through", () => {
    const copied = sources(undefined).toSorted()
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
    const image = sources("build").map((name) => name.replace("/build/", ""))
    expect([...files, "package.json", "node_modules"].filter((name) => !image.includes(name))).toEqual([])
  })

  it("runs as somebody, calls no shell, and ends on SIGTERM", () => {
    expect(last).toMatch(/^USER node$/mu)
    expect(last).toMatch(/^STOPSIGNAL SIGTERM$/mu)
    for (const word of ["ENTRYPOINT", "CMD"]) expect(last).toMatch(new RegExp(`^ *${word} \\[`, "mu"))
  })
})

describe("Images that others make", () => {
  const lines = Array.from(read("deploy/images.env").matchAll(/^(\w+)=(\S+)$/gmu))
  const tagged = new Map(lines.map(([, name = "", image = ""]) => [name, image.split("@", 1).join("")]))
  const script = path.join(root, "scripts/images.mjs")
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "spoke-images-"))
  afterAll(() => fs.rmSync(folder, { recursive: true }))

  /** A registry in which each image has its own name as its manifest, and a builder that prints what it is asked for. */
  const program = (name: string, text: string) =>
    fs.writeFileSync(path.join(folder, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 })
  program("skopeo", 'printf %s "$3"')
  program("builder", 'echo "$@"')
  const run = (...args: ReadonlyArray<string>) =>
    spawnSync(process.execPath, [script, ...args], {
      encoding: "utf8",
      env: { PATH: `${folder}:${process.env["PATH"]}`, CONTAINER_TOOL: "builder" }
    })

  it("have the same names everywhere", () => {
    const given = Array.from(dockerfile.matchAll(/^ARG (\w+_IMAGE)=(\S+)$/gmu), ([, ...words]) => words)
    const ofCompose = Array.from(
      read("compose.yaml").matchAll(/\$\{(\w+_IMAGE):-([^}]+)\}/gu),
      ([, ...words]) => words
    )
    for (const [name = "", image] of [...given, ...ofCompose])
      expect([name, tagged.get(name)]).toEqual([name, image])
    expect(new Set(ofCompose.map(([name = ""]) => name))).toEqual(new Set(tagged.keys()))
    // Every stage is one of them, or another stage.
    const from = Array.from(dockerfile.matchAll(/^FROM (\S+)/gmu), ([, name]) => name)
    expect(from).toEqual(["${RUNTIME_IMAGE}", "${NODE_IMAGE}", "runtime"])
  })

  it("build no release until each has a digest, which `pin` asks its registry for", () => {
    const file = path.join(folder, "images.env")
    const loose = read("deploy/images.env").replaceAll(/@sha256:[0-9a-f]+/gu, "")
    fs.writeFileSync(file, loose)
    for (const command of [["check"], ["build", "spoke:1"]]) {
      const refused = run(...command, "--file", file)
      expect([refused.status, refused.stdout]).toEqual([1, ""])
      expect(refused.stderr).toContain(`NODE_IMAGE has no digest: ${tagged.get("NODE_IMAGE")}`)
    }
    expect(run("pin", "--file", file).status).toBe(0)
    const digest = (image = "") => createHash("sha256").update(`docker://${image}`).digest("hex")
    const pinned = fs.readFileSync(file, "utf8")
    for (const [name, image] of tagged) expect(pinned).toContain(`${name}=${image}@sha256:${digest(image)}\n`)
    expect(pinned.replaceAll(/@sha256:[0-9a-f]+/gu, "")).toBe(loose)
    // Again, it is as before.
    run("pin", "--file", file)
    expect(fs.readFileSync(file, "utf8")).toBe(pinned)
    expect(run("check", "--file", file).status).toBe(0)
    const node = tagged.get("NODE_IMAGE")
    expect(run("build", "spoke:1", "--file", file).stdout).toContain(
      `build --build-arg NODE_IMAGE=${node}@sha256:${digest(node)} --build-arg RUNTIME_IMAGE=`
    )
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

  it("gives a container longer than a drain takes, as the image asks for", () => {
    const [, asked] = /give it (\d+) seconds/u.exec(dockerfile) ?? []
    for (const name of ["api", "worker"]) {
      const [, seconds] = /^(\d+)s$/u.exec(services[name].stop_grace_period) ?? []
      expect(Number(seconds)).toBeGreaterThanOrEqual(1 + longestDrainSeconds + 5)
      expect(asked).toBe(seconds)
    }
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
    expect(services.spoke.stop_grace_period).toBe(
      parse(read("compose.yaml"), { merge: true }).services.api.stop_grace_period
    )
    expect(Object.keys(volumes)).toEqual(services.spoke.volumes.map((volume: string) => volume.split(":")[0]))
  })
})
