import * as Path from "node:path"
import { expect, it } from "vitest"

interface Tests {
  readonly mayRunAgain: (files: ReadonlyArray<string>) => boolean
}

it("CI runs few failed files once more, and never those that would show lost data", async () => {
  const { mayRunAgain }: Tests = await import(Path.resolve(import.meta.dirname, "../.ci/tests.mjs"))
  const files = (...names: ReadonlyArray<string>) => names.map((name) => `/spoke/test/${name}.test.ts`)
  expect(mayRunAgain(files("browser/Widget", "e2e/Drain"))).toBe(true)
  expect(mayRunAgain(files("browser/Widget", "faults/Faults"))).toBe(false)
  expect(mayRunAgain(files("store/Turns"))).toBe(false)
  expect(mayRunAgain(files("e2e/A", "e2e/B", "e2e/C", "e2e/D", "e2e/E"))).toBe(false)
  expect(mayRunAgain([])).toBe(false)
})
