import { execFile } from "node:child_process"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { promisify } from "node:util"
import { expect, it } from "vitest"

const run = promisify(execFile)
const root = Path.resolve(import.meta.dirname, "../..")

// What it measures is of no interest here: it is that every part runs and no request to Spoke fails.
it("The benchmark runs to its end without a failed request", async () => {
  // A request that fails is an exit code, and then this throws.
  const { stdout } = await run(process.execPath, ["bench/run.mjs", "--quick", "--only", "chat"], {
    cwd: root,
    timeout: 280_000
  })
  const { streams, turns } = JSON.parse(stdout)
  expect(turns[0].embedded.requests).toBeGreaterThan(0)
  expect(streams[0].embedded.requests).toBeGreaterThan(0)
}, 300_000)

it("The page on performance and its charts show the recorded results", async () => {
  const folder = Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-report-"))
  try {
    await run(process.execPath, ["bench/report.mjs", folder], { cwd: root })
    const shown = (parent: string) =>
      Object.fromEntries(
        Fs.readdirSync(parent)
          .filter((name) => /^(?:performance|comparison)/u.test(name))
          .toSorted()
          .map((name) => [name, Fs.readFileSync(Path.join(parent, name), "utf8")])
      )
    expect(shown(Path.join(root, "docs"))).toEqual(shown(folder))
  } finally {
    Fs.rmSync(folder, { recursive: true })
  }
})
