/**
 * Runs all tests. CI machines have few cores, and tests that drive a browser or several processes sometimes fail
 * there only because of time. Failed files are run once more, one after the other, and reported as unsteady if they
 * pass. The fault suites have no second run, because data loss may be rare. If more than `maxUnsteadyFiles` files
 * fail, there is no second run either.
 */
import { spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { pathToFileURL } from "node:url"

const maxUnsteadyFiles = 4
const withoutSecondRun = /\/test\/(faults|store|usecases)\//

/** Failed files in a report of vitest; none if vitest ended before it wrote one. */
export const failedFiles = (report) =>
  report.testResults.filter(({ status }) => status === "failed").map(({ name }) => name)

export const mayRunAgain = (files) =>
  files.length > 0 && files.length <= maxUnsteadyFiles && !files.some((file) => withoutSecondRun.test(file))

const run = (command, args) => {
  const { signal, status } = spawnSync(command, args, { stdio: "inherit" })
  return signal === null ? (status ?? 1) : 1
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const folder = Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-ci-"))
  const file = Path.join(folder, "report.json")
  let status = run("npm", [
    "run",
    "test:all",
    "--",
    "--reporter=default",
    "--reporter=json",
    `--outputFile.json=${file}`
  ])
  if (status !== 0 && Fs.existsSync(file)) {
    const failed = failedFiles(JSON.parse(Fs.readFileSync(file, "utf8")))
    if (mayRunAgain(failed)) {
      process.stdout.write(`\nOnce more, one after the other:\n${failed.join("\n")}\n\n`)
      status = run("npx", ["vitest", "run", "--no-file-parallelism", ...failed])
      if (status === 0)
        process.stdout.write(`\nUNSTEADY: failed once and passed alone:\n${failed.join("\n")}\n`)
    }
  }
  Fs.rmSync(folder, { recursive: true })
  process.exitCode = status
}
