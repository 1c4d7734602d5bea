import { execFileSync, spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { expect, it } from "vitest"

const root = Path.resolve(import.meta.dirname, "../..")

// What it measures is of no interest here: it is that every part runs and no request to Spoke fails.
it("The benchmark runs to its end without a failed request", () => {
  const { status, stderr, stdout } = spawnSync(
    process.execPath,
    ["bench/run.mjs", "--quick", "--only", "chat"],
    { cwd: root, encoding: "utf8", timeout: 280_000 }
  )
  expect(stderr).toContain("done")
  expect({ status, stderr: status === 0 ? "" : stderr }).toEqual({ status: 0, stderr: "" })
  const { streams, turns } = JSON.parse(stdout)
  expect(turns[0].embedded.requests).toBeGreaterThan(0)
  expect(streams[0].embedded.requests).toBeGreaterThan(0)
}, 300_000)

it("The page on performance and its charts show the recorded results", () => {
  const folder = Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-report-"))
  try {
    execFileSync(process.execPath, ["bench/report.mjs", folder], { cwd: root })
    const shown = (parent: string) =>
      Object.fromEntries(
        Fs.readdirSync(parent)
          .filter((name) => name.startsWith("performance"))
          .toSorted()
          .map((name) => [name, Fs.readFileSync(Path.join(parent, name), "utf8")])
      )
    expect(shown(Path.join(root, "docs"))).toEqual(shown(folder))
  } finally {
    Fs.rmSync(folder, { recursive: true })
  }
})
