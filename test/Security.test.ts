import * as Fs from "node:fs"
import * as Path from "node:path"
import { describe, expect, it } from "vitest"

const root = Path.resolve(import.meta.dirname, "..")
const read = (name: string) => Fs.readFileSync(Path.join(root, name), "utf8")

describe("The threat model", () => {
  it("names tests that there are, and one for every threat", () => {
    const page = read("docs/security.md")
    const named = Array.from(page.matchAll(/`(test\/[^`]+)`/gu), ([, path = ""]) => path)
    expect(named.length).toBeGreaterThan(20)
    expect(named.filter((path) => !Fs.existsSync(Path.join(root, path)))).toEqual([])
    const [, table = ""] = /## Ways in[^\n]*\n([\s\S]*?)\n## /u.exec(page) ?? []
    const rows = table.split("\n").filter((line) => line.startsWith("| ") && !line.startsWith("| Way in"))
    expect(rows.length).toBeGreaterThan(15)
    expect(rows.filter((row) => !row.includes("`test/"))).toEqual([])
  })

  it("is where the policy and the README say", () => {
    expect(read("SECURITY.md")).toContain("(docs/security.md)")
    expect(read("README.md")).toContain("(docs/security.md)")
  })
})
