/** `spoke/effect` exports what docs/library.md lists, including every capability with every backend. */
import * as Context from "effect/Context"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { expect, it } from "vitest"
import * as offered from "../../src/effect.ts"

const root = Path.resolve(import.meta.dirname, "../..")

it("spoke/effect exports exactly what the documentation lists", () => {
  const page = Fs.readFileSync(Path.join(root, "docs/library.md"), "utf8")
  const [, table = ""] = /^\| Kind \| Exports of `spoke\/effect` \|\n((?:\|.*\n)+)/mu.exec(page) ?? []
  const listed = Array.from(table.matchAll(/`(\w+)`/gu), ([, name = ""]) => name)
  expect(listed.length).toBeGreaterThan(80)
  expect(listed.toSorted()).toEqual(Object.keys(offered).toSorted())
})

it("spoke/effect exports the tag and the layers of every capability", () => {
  const folder = Path.join(root, "src/capabilities")
  const capabilities = Fs.readdirSync(folder)
    .filter((name) => name.endsWith(".ts"))
    .map((name) => Path.basename(name, ".ts"))
  expect(capabilities.length).toBeGreaterThan(15)
  const exported = new Map<string, unknown>(Object.entries(offered))
  expect(capabilities.filter((name) => !Context.isTag(exported.get(name)))).toEqual([])
  // Those that collect registrations have none of their own.
  const withBackends = capabilities.filter((name) => Fs.existsSync(Path.join(folder, name)))
  const backends = withBackends.flatMap((capability) =>
    Fs.readdirSync(Path.join(folder, capability), { withFileTypes: true })
      .filter((entry) => entry.isFile())
      .filter(({ name }) =>
        /^export const layer/mu.test(Fs.readFileSync(Path.join(folder, capability, name), "utf8"))
      )
      .map(({ name }) => `${capability}${Path.basename(name, ".ts")}`)
  )
  expect(backends.length).toBeGreaterThan(25)
  expect(backends.filter((name) => !exported.has(name))).toEqual([])
})
