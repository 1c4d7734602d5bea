import * as Fs from "node:fs"
import * as Path from "node:path"
import { expect, it } from "vitest"

interface Group {
  readonly name: string
  readonly files: ReadonlyArray<string>
}

interface Tests {
  readonly mayRunAgain: (files: ReadonlyArray<string>) => boolean
  readonly groupsOf: (files: ReadonlyArray<string>) => ReadonlyArray<Group>
}

it("CI runs every test file in one group, those of the service before those of growth and benchmarks", async () => {
  const { groupsOf }: Tests = await import(Path.resolve(import.meta.dirname, "../.ci/tests.mjs"))
  const all = Fs.readdirSync(import.meta.dirname, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".test.ts"))
    .map((file) => `test/${file}`)
  const groups = groupsOf(all)
  expect(groups.flatMap(({ files }) => files).toSorted()).toEqual(all.toSorted())
  const placeOf = (file: string) => groups.findIndex(({ files }) => files.includes(file))
  const order = [
    "e2e/chat/Turns",
    "faults/Faults",
    "e2e/operations/Crash",
    "e2e/placement/Move",
    "bench/Soak"
  ]
  const places = order.map((name) => placeOf(`test/${name}.test.ts`))
  expect(places).toEqual(places.toSorted((one, other) => one - other))
  expect(new Set(places).size).toBe(places.length)
})

it("CI runs few failed files once more, and never those that would show lost data", async () => {
  const { mayRunAgain }: Tests = await import(Path.resolve(import.meta.dirname, "../.ci/tests.mjs"))
  const files = (...names: ReadonlyArray<string>) => names.map((name) => `/spoke/test/${name}.test.ts`)
  expect(mayRunAgain(files("browser/Widget", "e2e/Drain"))).toBe(true)
  expect(mayRunAgain(files("browser/Widget", "faults/Faults"))).toBe(false)
  expect(mayRunAgain(files("store/Turns"))).toBe(false)
  expect(mayRunAgain(files("e2e/A", "e2e/B", "e2e/C", "e2e/D", "e2e/E"))).toBe(false)
  expect(mayRunAgain([])).toBe(false)
})
