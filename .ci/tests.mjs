/**
 * Runs all tests: first the short suites, then the long ones in groups, the most important first. A slow machine may have
 * no time for all groups: none begins more than MAX_START_SECONDS after the start of this script, and a line names those
 * that were left out.
 *
 * CI machines have few cores, and tests that drive a browser or several processes sometimes fail there only because of
 * time. Failed files are run once more, one after the other, and reported as unsteady if they pass. The fault suites have
 * no second run, because data loss may be rare. If more than `maxUnsteadyFiles` files fail, there is no second run either.
 *
 *   node .ci/tests.mjs [MAX_START_SECONDS]
 */
import { spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"

const root = fileURLToPath(new URL("..", import.meta.url))
const maxUnsteadyFiles = 4
const withoutSecondRun = /\/test\/(faults|store|usecases)\//

/** Groups of the long suites in order. A file belongs to the first group that it matches. */
const longGroups = [
  { name: "the service", files: /^test\/e2e\/(?!events\/Kills|operations\/|placement\/|upgrade\/)/ },
  { name: "faults and hostile input", files: /^test\/(?!adding\/|bench\/|browser\/|e2e\/|growth\/)/ },
  { name: "operations", files: /^test\/e2e\/operations\// },
  { name: "browser", files: /^test\/browser\// },
  { name: "moves, upgrades and kills", files: /^test\/e2e\// },
  { name: "growth, benchmarks and additions", files: /^test\// }
]

/** Failed files in a report of vitest; none if vitest ended before it wrote one. */
export const failedFiles = (report) =>
  report.testResults.filter(({ status }) => status === "failed").map(({ name }) => name)

export const mayRunAgain = (files) =>
  files.length > 0 && files.length <= maxUnsteadyFiles && !files.some((file) => withoutSecondRun.test(file))

/** The groups of `files` that have any, in order. */
export const groupsOf = (files) => {
  const groups = longGroups.map(({ name }) => ({ name, files: [] }))
  for (const file of files) groups[longGroups.findIndex((group) => group.files.test(file))]?.files.push(file)
  return groups.filter((group) => group.files.length > 0)
}

const run = (command, args) => {
  const { signal, status } = spawnSync(command, args, { cwd: root, stdio: "inherit" })
  return signal === null ? (status ?? 1) : 1
}

/** Runs vitest, and returns its status and its report; null if it ended before it wrote one. */
const runReported = (folder, command, args) => {
  const file = Path.join(folder, "report.json")
  Fs.rmSync(file, { force: true })
  const status = run(command, [...args, "--reporter=default", "--reporter=json", `--outputFile.json=${file}`])
  return { status, report: Fs.existsSync(file) ? JSON.parse(Fs.readFileSync(file, "utf8")) : null }
}

const allTests = () =>
  Fs.readdirSync(Path.join(root, "test"), { recursive: true })
    .filter((file) => file.endsWith(".test.ts"))
    .map((file) => `test/${file}`)

const main = (maxStartSeconds) => {
  const folder = Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-ci-"))
  const begun = performance.now()
  const say = (text) =>
    process.stdout.write(`\n${Math.round((performance.now() - begun) / 1_000)}s of tests  ${text}\n`)
  say("the short suites")
  const shortRun = runReported(folder, "npm", ["test", "--"])
  if (shortRun.report === null) return 1
  const runs = [shortRun]
  const short = new Set(shortRun.report.testResults.map(({ name }) => Path.relative(root, name)))
  for (const { files, name } of groupsOf(allTests().filter((file) => !short.has(file)))) {
    if (performance.now() - begun > maxStartSeconds * 1_000) {
      say(`LEFT OUT, for want of time: ${name} (${files.length} files)`)
      continue
    }
    say(name)
    runs.push(runReported(folder, "npx", ["vitest", "run", ...files]))
  }
  Fs.rmSync(folder, { recursive: true })

  if (runs.every(({ status }) => status === 0)) return 0
  const failed = runs.flatMap(({ report }) => (report === null ? [] : failedFiles(report)))
  // A run that fails without a failed file, such as for an error outside of tests, has no second one.
  const isKnown = runs.every(
    ({ report, status }) => status === 0 || (report !== null && failedFiles(report).length > 0)
  )
  if (!isKnown || !mayRunAgain(failed)) {
    say(`FAILED:\n${failed.join("\n")}`)
    return 1
  }
  say(`Once more, one after the other:\n${failed.join("\n")}\n`)
  const status = run("npx", ["vitest", "run", "--no-file-parallelism", ...failed])
  if (status === 0) say(`UNSTEADY: failed once and passed alone:\n${failed.join("\n")}`)
  return status
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href)
  process.exitCode = main(Number(process.argv[2] ?? Number.POSITIVE_INFINITY))
