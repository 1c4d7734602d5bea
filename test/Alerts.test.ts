import * as fs from "node:fs"
import * as path from "node:path"
import { expect, it } from "vitest"
import { parse } from "yaml"

const root = path.join(import.meta.dirname, "..")
const page = fs.readFileSync(path.join(root, "docs/observability.md"), "utf8")

interface Rule {
  readonly expr: string
  readonly annotations: { readonly summary: string }
}

it("the rules for Prometheus ask for metrics that the documentation lists", () => {
  const { groups } = parse(fs.readFileSync(path.join(root, "deploy/alerts.yml"), "utf8"))
  const rules: ReadonlyArray<Rule> = groups.flatMap((group: { readonly rules: unknown }) => group.rules)
  expect(rules.length).toBeGreaterThan(4)
  for (const { annotations, expr } of rules) {
    const names = Array.from(expr.matchAll(/\b(?:spoke|process)_\w+/gu), ([name]) =>
      name.replace(/_(?:count|sum|bucket)$/u, "")
    )
    expect(names.length).toBeGreaterThan(0)
    for (const name of names) expect(page).toContain(`| \`${name}\` |`)
    expect(annotations.summary.length).toBeGreaterThan(10)
  }
})
