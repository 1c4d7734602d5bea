/** The pages of docs/design tell of this code: what they link to exists, and every promise names a test. */
import * as Fs from "node:fs"
import * as Path from "node:path"
import { describe, expect, it } from "vitest"

const root = Path.join(import.meta.dirname, "..")
const folder = "docs/design"

const pages = Fs.readdirSync(Path.join(root, folder), { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".md"))
  .map((name) => name.split(Path.sep).join("/"))
  .toSorted()

const textOf = (page: string) => Fs.readFileSync(Path.join(root, folder, page), "utf8")
const linesOf = (page: string) => textOf(page).trimEnd().split("\n")

interface Link {
  /** As a path from `root`. */
  readonly target: string
  readonly heading: string
}

const linksOf = (page: string): ReadonlyArray<Link> =>
  Array.from(
    textOf(page).matchAll(/\]\((?!https?:)([^)#\s]*)#?([^)]*)\)/gu),
    ([, path = "", heading = ""]) => ({
      target: Path.posix.join(folder, path === "" ? page : Path.posix.join(Path.posix.dirname(page), path)),
      heading
    })
  )

/** Headings as links name them. */
const headingsOf = (page: string) =>
  Array.from(Fs.readFileSync(Path.join(root, page), "utf8").matchAll(/^#+ (.+)$/gmu), ([, heading = ""]) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} -]/gu, "")
      .replaceAll(" ", "-")
  )

describe("The pages of docs/design", () => {
  it("link only to files and headings that there are", () => {
    const links = pages.flatMap((page) => linksOf(page).map((link) => ({ page, ...link })))
    expect(links.length).toBeGreaterThan(100)
    const broken = links.filter(
      ({ heading, target }) =>
        !Fs.existsSync(Path.join(root, target)) || (heading !== "" && !headingsOf(target).includes(heading))
    )
    expect(broken).toEqual([])
  })

  it("are all reached from their index", () => {
    const reached = new Set<string>()
    const reach = (page: string): void => {
      if (reached.has(page) || !pages.includes(page)) return
      reached.add(page)
      for (const { target } of linksOf(page)) reach(Path.posix.relative(folder, target))
    }
    reach("README.md")
    expect(pages.filter((page) => !reached.has(page))).toEqual([])
  })

  it("name a test for every promise", () => {
    const rows = linesOf("guarantees.md").filter((line) => /^\| (?!Promise \|)/u.test(line))
    expect(rows.length).toBeGreaterThan(40)
    expect(rows.filter((row) => !/\]\(\.\.\/\.\.\/test\/[^)]+\.ts\)/u.test(row))).toEqual([])
  })

  it("keep decisions within sixty lines and the tour within 150, and number decisions without a gap", () => {
    const decisions = pages.filter((page) => page.startsWith("decisions/"))
    expect(decisions.map((page) => Number(/\d{4}/u.exec(page)))).toEqual(
      decisions.map((_, place) => place + 1)
    )
    expect(decisions.filter((page) => linesOf(page).length > 60)).toEqual([])
    expect(linesOf("tour.md").length).toBeLessThanOrEqual(150)
  })
})
