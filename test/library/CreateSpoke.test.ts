/** `npm create spoke`: what it writes, and what it refuses. */
import { execFile } from "node:child_process"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { afterAll, describe, expect, it } from "vitest"

const root = Path.join(import.meta.dirname, "../..")
const place = Fs.mkdtempSync(Path.join(Os.tmpdir(), "create-spoke-"))
afterAll(() => Fs.rmSync(place, { recursive: true, force: true }))

const read = (...names: ReadonlyArray<string>) => Fs.readFileSync(Path.join(...names), "utf8")
const manifestOf = (folder: string) => JSON.parse(read(folder, "package.json"))
const { version } = manifestOf(root)

interface Ended {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Run without a terminal. */
const create = (...args: ReadonlyArray<string>): Promise<Ended> =>
  new Promise((resolve) => {
    const program = Path.join(root, "create-spoke/create-spoke.mjs")
    execFile(process.execPath, [program, ...args], { cwd: place }, (error, stdout, stderr) => {
      resolve({ code: typeof error?.code === "number" ? error.code : 0, stdout, stderr })
    })
  })

describe("create-spoke", () => {
  it("is of Spoke's own version, and depends on nothing", () => {
    const own = manifestOf(Path.join(root, "create-spoke"))
    expect(own).toMatchObject({ name: "create-spoke", version })
    expect(Object.keys(own)).not.toContain("dependencies")
  })

  it.each(["node", "hono", "next", "service"])("makes a project of the template %s", async (template) => {
    const { code, stdout, stderr } = await create(`Tea House ${template}`, "--template", template, "--yes")
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" })
    expect(stdout).toContain("npm install")
    const folder = Path.join(place, `Tea House ${template}`)
    const { dependencies, name, scripts, type } = manifestOf(folder)
    expect({ name, type, spoke: dependencies.spoke }).toEqual({
      name: `tea-house-${template}`,
      type: "module",
      spoke: `^${version}`
    })
    expect(scripts.start).toBeTypeOf("string")
    expect(read(folder, ".gitignore")).toContain(".spoke/")
    expect(read(folder, "knowledge/tea.md")).toContain("eighty degrees")
    expect(read(folder, "README.md")).toContain("npm install")
    expect(Fs.existsSync(Path.join(folder, "guide.mjs"))).toBe(template !== "service")
    expect(Fs.existsSync(Path.join(folder, "compose.yaml"))).toBe(template === "service")
  })

  it("names the packages of the service's template as Spoke does", () => {
    const { dependencies } = manifestOf(Path.join(root, "create-spoke/templates/service"))
    const peers = Object.entries(manifestOf(root).peerDependencies)
    const optional = peers.filter(([name]) => name !== "effect" && !name.startsWith("@effect/"))
    expect(dependencies).toEqual(Object.fromEntries(optional))
  })

  it("takes the defaults with --yes, and another Spoke where one is named", async () => {
    expect((await create("--yes", "--spoke", "file:../spoke.tgz")).code).toBe(0)
    expect(manifestOf(Path.join(place, "my-spoke")).dependencies.spoke).toBe("file:../spoke.tgz")
    expect(Fs.existsSync(Path.join(place, "my-spoke/server.mjs"))).toBe(true)
  })

  it("names a tarball by its whole path: npm looks for it from the new folder", async () => {
    Fs.writeFileSync(Path.join(place, "spoke.tgz"), "")
    for (const [number, path] of ["./spoke.tgz", "spoke.tgz", Path.join(place, "spoke.tgz")].entries()) {
      const folder = `packed-${number}`
      expect((await create(folder, "--yes", "--spoke", path)).code).toBe(0)
      const { dependencies } = manifestOf(Path.join(place, folder))
      expect(dependencies.spoke).toBe(`file:${Path.join(place, "spoke.tgz")}`)
    }
    Fs.mkdirSync(Path.join(place, "latest"))
    expect((await create("tagged", "--yes", "--spoke", "latest")).code).toBe(0)
    expect(manifestOf(Path.join(place, "tagged")).dependencies.spoke).toBe("latest")
  })

  it("refuses a folder that is not empty, and changes nothing in it", async () => {
    const folder = Path.join(place, "full")
    Fs.mkdirSync(folder)
    Fs.writeFileSync(Path.join(folder, "mine.txt"), "mine")
    const { code, stderr } = await create("full", "--template", "node", "--yes")
    expect(code).toBe(1)
    expect(stderr).toContain("full is not empty")
    expect(Fs.readdirSync(folder)).toEqual(["mine.txt"])
  })

  it.each([
    { said: ["a", "--template", "rails", "--yes"], told: "no template rails" },
    { said: ["a", "--templat", "node"], told: "--templat" },
    { said: ["a", "b", "--yes"], told: "One folder" },
    { said: ["a"], told: "Say template, or --yes" }
  ])("refuses $said, and makes nothing", async ({ said, told }) => {
    const { code, stderr } = await create(...said)
    expect(code).toBe(1)
    expect(stderr).toContain(told)
    expect(stderr).not.toMatch(/^\s+at /mu)
    expect(Fs.existsSync(Path.join(place, "a"))).toBe(false)
  })
})
