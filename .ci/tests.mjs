/**
 * Runs tests and reports unsteady ones.
 *
 *   node .ci/tests.mjs                    what CI runs: the short suites and the first groups of the long ones
 *   node .ci/tests.mjs --callers          the suites of callers, for other engines that the environment names
 *   node .ci/tests.mjs --long [FILE...]   `npm run test:long`: the other groups, or these files of them
 *
 * The last form takes about three quarters of an hour. It records the result of each file in `bench/long-suites.json`.
 *
 * CI machines have few cores, and tests that drive a browser or several processes sometimes fail there only because of
 * time. Failed files are run once more, one after the other, and reported as unsteady if they pass. Suites of faults and
 * kills have no second run, because data loss may be rare. If more than `maxUnsteadyFiles` files fail, there is no second
 * run either.
 */
import { execFileSync, spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { pathToFileURL } from "node:url"
import { parseArgs } from "node:util"
import { root } from "../scripts/seed.mjs"
import { heavySuites, longFiles, testFiles } from "../scripts/suites.mjs"

const recordFile = Path.join(root, "bench/long-suites.json")
const maxUnsteadyFiles = 4
const withoutSecondRun =
  /\/test\/(faults\/|store\/|usecases\/|e2e\/(channels\/Webhooks|chat\/Idempotency|operations\/Crash)\.)/

/**
 * Groups of the long suites in order. A file belongs to the first group that it matches. CI runs the first ones: the heavy
 * suites, and the first minutes of a user, the packed library, the upgrade of a filled database, and kills.
 */
const longGroups = [
  { name: "many inputs and data directories", files: heavySuites },
  {
    name: "first steps, package, upgrade and kills",
    files: [
      /^test\/(browser\/(FirstMinutes|Widget)|e2e\/(Package|Start|events\/Kills|operations\/FirstStart|upgrade\/Upgrade))\.test/
    ]
  },
  { name: "the service", files: [/^test\/e2e\/(?!operations\/|placement\/|upgrade\/)/] },
  { name: "faults and hostile input", files: [/^test\/(?!adding\/|bench\/|browser\/|e2e\/|growth\/)/] },
  { name: "operations", files: [/^test\/e2e\/operations\//] },
  { name: "browser", files: [/^test\/browser\//] },
  { name: "moves and upgrades", files: [/^test\/e2e\//] },
  { name: "growth, benchmarks and additions", files: [/^test\//] }
]
const ciGroups = 2

/**
 * What callers are promised. CI runs them again with two servers in turn and two workers, on one PostgreSQL and one Redis,
 * and under row level security, as production runs. The other suites with servers are of the command and of files on this
 * machine (Docs, Package, FirstStart, Backup, Migrate, Collector), measure one process (HostileFiles), or start their own
 * processes on these engines already (Production, Roles, Redis, Drain, Embedding, ChannelsUnderFire).
 */
const callerSuites = [
  /^test\/e2e\/(Billing|Deletion|Headers|Realtime|routes\/Routes|SecretScanner|Specification|Tenant)\.test/,
  /^test\/e2e\/channels\/(Messenger|Takeover|Webhooks)\.test/,
  /^test\/e2e\/chat\/(Answers|Conversations|Idempotency|Mcp|Replies|TurnFaults|TurnMatrix|Turns)\.test/,
  /^test\/e2e\/operations\/(Crash|Metrics)\.test/
]

/** The files of `callerSuites`. */
export const callerFiles = () =>
  testFiles().filter((file) => callerSuites.some((suites) => suites.test(file)))

/** Failed files in a report of vitest; none if vitest ended before it wrote one. */
export const failedFiles = (report) =>
  report.testResults.filter(({ status }) => status === "failed").map(({ name }) => name)

export const mayRunAgain = (files) =>
  files.length > 0 && files.length <= maxUnsteadyFiles && !files.some((file) => withoutSecondRun.test(file))

/** The groups of `files`, in order. Some may be empty. */
export const groupsOf = (files) => {
  const groups = longGroups.map(({ name }) => ({ name, files: [] }))
  for (const file of files) {
    const place = longGroups.findIndex((group) => group.files.some((suites) => suites.test(file)))
    groups[place]?.files.push(file)
  }
  return groups
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

/** Writes the results of `reports` into the record, and removes files that are gone from it. */
const record = (reports) => {
  const commit = execFileSync("git", ["rev-parse", "--short", "HEAD"], { cwd: root, encoding: "utf8" }).trim()
  const before = Fs.existsSync(recordFile) ? JSON.parse(Fs.readFileSync(recordFile, "utf8")) : {}
  const results = reports.flatMap(({ testResults }) => testResults)
  const now = Object.fromEntries(
    results.map(({ assertionResults, endTime, name, startTime }) => {
      const count = (status) => assertionResults.filter((test) => test.status === status).length
      const seconds = Math.round((endTime - startTime) / 1_000)
      const day = new Date(endTime).toISOString().slice(0, 10)
      const [passed, failed, skipped] = [
        count("passed"),
        count("failed"),
        count("skipped") + count("pending")
      ]
      return [Path.relative(root, name), { passed, failed, skipped, seconds, commit, day }]
    })
  )
  const known = longFiles()
  const entries = Object.entries({ ...before, ...now }).filter(([file]) => known.includes(file))
  Fs.writeFileSync(recordFile, `${JSON.stringify(Object.fromEntries(entries.toSorted()), null, 2)}\n`)
}

/** Returns the status of the process. Reports are written into `folder`. `mode` is an option of the command, or empty. */
const main = (folder, mode, given) => {
  const isLong = mode === "--long"
  const begun = performance.now()
  const say = (text) =>
    process.stdout.write(`\n${Math.round((performance.now() - begun) / 1_000)}s of tests  ${text}\n`)
  const unknown = given.filter((file) => !longFiles().includes(file))
  if (unknown.length > 0) {
    say(`No long suites: ${unknown.join(", ")}`)
    return 1
  }
  const runs = []
  const runNext = (name, command, args) => {
    say(name)
    runs.push(runReported(folder, command, args))
  }
  const groupsToRun = () => {
    if (mode === "--callers") return [{ name: "the suites of callers", files: callerFiles() }]
    const all = groupsOf(given.length > 0 ? given : longFiles())
    if (!isLong) return all.slice(0, ciGroups)
    return given.length > 0 ? all : all.slice(ciGroups)
  }
  if (mode === "") runNext("the short suites", "npm", ["test", "--"])
  else if (isLong && run("npm", ["run", "build"]) !== 0) return 1
  for (const { files, name } of groupsToRun())
    if (files.length > 0) runNext(name, "npx", ["vitest", "run", ...files])

  const reports = runs.flatMap(({ report }) => (report === null ? [] : [report]))
  if (isLong) record(reports)
  if (runs.every(({ status }) => status === 0)) return 0
  const failed = reports.flatMap(failedFiles)
  // A run that fails without a failed file, such as for an error outside of tests, has no second one.
  const isKnown = runs.every(
    ({ report, status }) => status === 0 || (report !== null && failedFiles(report).length > 0)
  )
  if (!isKnown || !mayRunAgain(failed)) {
    say(`FAILED:\n${failed.join("\n")}`)
    return 1
  }
  const again = failed.map((file) => Path.relative(root, file))
  say(`Once more, one after the other:\n${again.join("\n")}\n`)
  const second = runReported(folder, "npx", ["vitest", "run", "--no-file-parallelism", ...again])
  if (isLong && second.report !== null) record([second.report])
  if (second.status === 0) say(`UNSTEADY: failed once and passed alone:\n${again.join("\n")}`)
  return second.status
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const { positionals, values } = parseArgs({
    options: { callers: { type: "boolean" }, long: { type: "boolean" } },
    allowPositionals: true
  })
  const mode = values.long ? "--long" : values.callers ? "--callers" : ""
  const folder = Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-ci-"))
  process.exitCode = main(folder, mode, positionals)
  Fs.rmSync(folder, { recursive: true })
}
