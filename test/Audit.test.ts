import * as Fs from "node:fs"
import * as Path from "node:path"
import { describe, expect, it } from "vitest"

const root = Path.resolve(import.meta.dirname, "..")
const read = (name: string) => JSON.parse(Fs.readFileSync(Path.join(root, name), "utf8"))

interface Audit {
  readonly imported: () => ReadonlyArray<string>
  readonly problems: (lock: unknown, manifest: unknown, names: ReadonlyArray<string>) => ReadonlyArray<string>
  readonly advisories: (
    stdout: string,
    shipped: ReadonlySet<string>
  ) => { readonly asked: boolean; readonly serious: number }
}
/** Plain JavaScript: it runs without a build. */
const audit = (): Promise<Audit> => import(Path.join(root, ".ci/audit.mjs"))

const sound = { version: "1.0.0", integrity: `sha512-${"A".repeat(86)}==`, license: "MIT" }
const lockOf = (path: string, entry: object) => ({ lockfileVersion: 3, packages: { "": {}, [path]: entry } })

describe("The audit of packages", () => {
  it("finds nothing in what the project rests on", async () => {
    const { imported, problems } = await audit()
    expect(problems(read("package-lock.json"), read("package.json"), imported())).toEqual([])
  })

  it("names a package that is not what it has to be", async () => {
    const { problems } = await audit()
    const found = (entry: object, path = "node_modules/odd") => problems(lockOf(path, entry), {}, [])
    expect(found(sound)).toEqual([])
    const { integrity: _, ...unhashed } = sound
    const doctored: ReadonlyArray<readonly [object, string]> = [
      [unhashed, "has no sha512 integrity"],
      [{ ...sound, integrity: "sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=" }, "has no sha512 integrity"],
      [{ ...sound, resolved: "git+ssh://git@example.com/odd.git#1" }, "comes from elsewhere"],
      [{ ...sound, resolved: "https://registry.npmjs.org.example.com/odd.tgz" }, "comes from elsewhere"],
      [{ ...sound, link: true }, "is a link"],
      [{ ...sound, hasInstallScript: true }, "runs a script when it is installed"],
      [{ ...sound, deprecated: "Use another" }, "is deprecated"],
      [{ ...sound, license: "AGPL-3.0" }, "is under the licence AGPL-3.0"],
      [{ ...sound, license: undefined, dev: true }, "is under the licence that it does not name"],
      [{ ...sound, license: "MPL-2.0" }, "is under the licence MPL-2.0"]
    ]
    for (const [entry, problem] of doctored) expect(found(entry)).toEqual([`node_modules/odd ${problem}`])
    for (const name of ["jsonwebtoken", "bcrypt", "@noble/hashes", "crypto-js"]) {
      expect(found(sound, `node_modules/${name}`)).toEqual([
        `node_modules/${name} is cryptography that Node has`
      ])
    }
    expect(found({ ...sound, license: "MPL-2.0", dev: true })).toEqual([])
  })

  it("asks as much of what the code imports, and of what that needs, as of what is installed with it", async () => {
    const { imported, problems } = await audit()
    expect(imported()).toEqual(expect.arrayContaining(["effect", "@effect/platform", "linkedom", "unpdf"]))
    const tool = { ...sound, license: "MPL-2.0", dev: true }
    const packages = {
      "": {},
      "node_modules/bundled": { ...tool, dependencies: { within: "1" } },
      "node_modules/bundled/node_modules/within": { ...tool, dependencies: { beside: "1" } },
      "node_modules/beside": tool,
      "node_modules/within": tool
    }
    const found = problems({ lockfileVersion: 3, packages }, {}, ["bundled"])
    expect(found).toEqual([
      "node_modules/bundled is under the licence MPL-2.0",
      "node_modules/bundled/node_modules/within is under the licence MPL-2.0",
      "node_modules/beside is under the licence MPL-2.0"
    ])
  })

  it("names a range that leads elsewhere than to the registry", async () => {
    const { problems } = await audit()
    for (const range of [
      "github:a/b",
      "a/b#main",
      "git+https://example.com/b.git",
      "file:../b",
      "https://example.com/b.tgz"
    ]) {
      expect(problems({ lockfileVersion: 3, packages: {} }, { dependencies: { b: range } }, [])).toEqual([
        "package.json: b does not come from the registry"
      ])
    }
  })

  it("tells a registry that was not asked from one that knows nothing bad", async () => {
    const { advisories } = await audit()
    const told = (severity: string, path: string) =>
      JSON.stringify({
        metadata: { vulnerabilities: {} },
        vulnerabilities: { a: { severity, nodes: [path] } }
      })
    const shipped = new Set(["node_modules/a"])
    const serious = (text: string) => advisories(text, shipped).serious
    expect(advisories(told("moderate", "node_modules/a"), shipped)).toEqual({ asked: true, serious: 0 })
    expect(serious(told("high", "node_modules/a"))).toBe(1)
    expect(serious(told("critical", "node_modules/a"))).toBe(1)
    expect(serious(told("critical", "node_modules/tool"))).toBe(0)
    for (const text of ["", "{}", '{"statusCode":405}']) expect(advisories(text, shipped).asked).toBe(false)
  })
})
