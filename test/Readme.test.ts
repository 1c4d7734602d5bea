import * as fs from "node:fs"
import * as path from "node:path"
import * as Option from "effect/Option"
import * as SchemaAST from "effect/SchemaAST"
import { describe, expect, it } from "vitest"
import { Variables } from "../src/app/config/Config.ts"

const root = path.join(import.meta.dirname, "..")
const readme = fs.readFileSync(path.join(root, "README.md"), "utf8")

const table = [
  "| Variable | Meaning |",
  "|---|---|",
  ...SchemaAST.getPropertySignatures(Variables.ast).map((variable) => {
    const meaning = SchemaAST.getDescriptionAnnotation(variable)
    return `| \`${String(variable.name)}\` | ${Option.getOrElse(meaning, () => "")} |`
  })
].join("\n")

const documents = fs.readdirSync(path.join(root, "docs")).filter((name) => name.endsWith(".md"))
const pages = ["README.md", ...documents.map((name) => `docs/${name}`)]
const read = (page: string) => fs.readFileSync(path.join(root, page), "utf8")

/** Links to files and headings of the project, by path from its root. */
const links = (page: string) =>
  Array.from(
    read(page).matchAll(/\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)]+))?\)/gu),
    ([, target = "", fragment]) => ({
      page,
      target: target === "" ? page : path.join(path.dirname(page), target),
      fragment
    })
  )

/** The anchors of a page's headings, as Git hosts make them. */
const anchors = (page: string) =>
  Array.from(
    read(page)
      .replace(/^```[\s\S]*?^```/gmu, "")
      .matchAll(/^#+ (.+)$/gmu),
    ([, heading = ""]) =>
      heading
        .toLowerCase()
        .replace(/\[([^\]]+)\]\([^)]*\)/gu, "$1")
        .replace(/[^\p{L}\p{N}\s_-]/gu, "")
        .trim()
        .replace(/\s/gu, "-")
  )

describe("The README", () => {
  it("lists every configuration variable with its meaning", () => {
    const [, listed = ""] = /<!-- variables -->\n([\s\S]*?)\n?<!-- \/variables -->/u.exec(readme) ?? []
    expect(listed).toBe(table)
  })

  it("and the documentation link only to files and headings that exist", () => {
    const broken = pages.flatMap((page) =>
      links(page).filter(({ fragment, target }) => {
        if (!fs.existsSync(path.join(root, target))) return true
        return fragment !== undefined && !anchors(target).includes(fragment)
      })
    )
    expect(broken).toEqual([])
  })

  it("and the interface link only to guides and headings that exist", () => {
    const interfaceFiles = fs
      .readdirSync(path.join(root, "src/ui/dashboard"), { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".tsx"))
    const guides = interfaceFiles.flatMap((file) =>
      Array.from(
        read(`src/ui/dashboard/${file}`).matchAll(/\bguide="([^"#]+)(?:#([^"]+))?"/gu),
        ([, name, fragment]) => ({
          file,
          page: `docs/${name}.md`,
          fragment
        })
      )
    )
    expect(guides.length).toBeGreaterThan(20)
    expect(
      guides.filter(
        ({ fragment, page }) =>
          !pages.includes(page) || (fragment !== undefined && !anchors(page).includes(fragment))
      )
    ).toEqual([])
  })

  it("is followed by a start page that names every page of the documentation", () => {
    const named = links("docs/README.md").map(({ target }) => target)
    expect(pages.slice(1).filter((page) => page !== "docs/README.md" && !named.includes(page))).toEqual([])
  })
})
