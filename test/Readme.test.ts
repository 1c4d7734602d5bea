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

describe("The README", () => {
  it("lists every configuration variable with its meaning", () => {
    const [, listed = ""] = /<!-- variables -->\n([\s\S]*?)\n?<!-- \/variables -->/u.exec(readme) ?? []
    expect(listed).toBe(table)
  })

  it("and the documentation link only to files that exist", () => {
    const documents = fs.readdirSync(path.join(root, "docs")).filter((name) => name.endsWith(".md"))
    const pages = ["README.md", ...documents.map((name) => `docs/${name}`)]
    const broken = pages.flatMap((page) => {
      const text = fs.readFileSync(path.join(root, page), "utf8")
      return Array.from(text.matchAll(/\]\((?!https?:)([^)#]+)[^)]*\)/gu), ([, target = ""]) =>
        path.join(root, path.dirname(page), target)
      ).filter((target) => !fs.existsSync(target))
    })
    expect(broken).toEqual([])
  })
})
