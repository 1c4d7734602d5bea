import * as Path from "node:path"
import { expect, it } from "vitest"

interface Group {
  readonly name: string
  readonly files: ReadonlyArray<string>
}

interface Tests {
  readonly mayRunAgain: (files: ReadonlyArray<string>) => boolean
  readonly callerFiles: () => ReadonlyArray<string>
  readonly groupsOf: (files: ReadonlyArray<string>) => ReadonlyArray<Group>
}

interface Suites {
  readonly longFiles: () => ReadonlyArray<string>
}

const root = Path.resolve(import.meta.dirname, "..")
const tests = (): Promise<Tests> => import(Path.join(root, ".ci/tests.mjs"))
const { longFiles }: Suites = await import(Path.join(root, "scripts/suites.mjs"))

it("Every long suite is in one group", async () => {
  const { groupsOf } = await tests()
  const files = longFiles()
  expect(files).toContain("test/e2e/operations/Crash.test.ts")
  expect(files).not.toContain("test/CiTests.test.ts")
  expect(files).not.toContain("test/e2e/Specification.test.ts")
  const grouped = groupsOf(files).flatMap((group) => group.files)
  expect(grouped.toSorted()).toEqual(files.toSorted())
})

it("CI runs the heavy suites, the first minutes of a user, the packed library, an upgrade and kills", async () => {
  const { groupsOf } = await tests()
  const [heavy, first] = groupsOf(longFiles())
  expect(heavy?.files).toContain("test/library/Canaries.test.ts")
  expect(heavy?.files.length).toBe(17)
  expect(first?.files.map((file) => Path.basename(file, ".test.ts")).toSorted()).toEqual(
    ["FirstMinutes", "FirstStart", "Kills", "Package", "Start", "Upgrade", "Widget"].toSorted()
  )
})

it("CI runs the suites of callers once more on PostgreSQL and Redis", async () => {
  const { callerFiles } = await tests()
  const files = callerFiles()
  expect(files).toContain("test/e2e/Specification.test.ts")
  expect(files).toContain("test/e2e/chat/TurnMatrix.test.ts")
  expect(files.length).toBe(21)
})

it("CI runs few failed files once more, and never those that would show lost data", async () => {
  const { mayRunAgain } = await tests()
  const files = (...names: ReadonlyArray<string>) => names.map((name) => `/spoke/test/${name}.test.ts`)
  expect(mayRunAgain(files("browser/Widget", "e2e/Drain"))).toBe(true)
  expect(mayRunAgain(files("browser/Widget", "faults/Faults"))).toBe(false)
  expect(mayRunAgain(files("store/Turns"))).toBe(false)
  expect(mayRunAgain(files("e2e/operations/Crash"))).toBe(false)
  expect(mayRunAgain(files("e2e/A", "e2e/B", "e2e/C", "e2e/D", "e2e/E"))).toBe(false)
  expect(mayRunAgain([])).toBe(false)
})
