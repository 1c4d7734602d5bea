import * as fs from "node:fs"
import * as path from "node:path"
import { describe, expect, it } from "vitest"

const root = path.join(import.meta.dirname, "..")
const page = fs.readFileSync(path.join(root, "docs/design/limits.md"), "utf8")

/** What stands in the parentheses of each `new FairLimiter(…)`. */
const limiters = fs
  .readdirSync(path.join(root, "src"), { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".ts"))
  .flatMap((file) =>
    fs
      .readFileSync(path.join(root, "src", file), "utf8")
      .split("new FairLimiter(")
      .slice(1)
      .map((text) => text.split(")", 1).join(""))
  )

describe("The page of the limits", () => {
  it("lists every limit that has a name, and no other", () => {
    const names = limiters.flatMap((text) => /name: "([a-z-]+)"/u.exec(text)?.[1] ?? [])
    const listed = Array.from(page.matchAll(/^\| `([a-z-]+)` \|/gmu), ([, name]) => name)
    expect(names.length).toBeGreaterThan(20)
    expect(listed.toSorted()).toEqual(names.toSorted())
  })

  it("is of limits that have a name each, but for those of a site", () => {
    expect(limiters.filter((text) => !/name: "[a-z-]+"/u.test(text))).toEqual([
      expect.stringContaining("name: null")
    ])
  })
})
