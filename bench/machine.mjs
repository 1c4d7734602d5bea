/** Processes of a benchmark: started, measured from /proc and ended again. Linux only. */
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import { createServer } from "node:net"
import * as os from "node:os"
import * as path from "node:path"

export const root = path.resolve(import.meta.dirname, "..")

const running = new Set()
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL")
})
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1))

/** Variables of the environment that would affect the measurement. */
const serviceVariables =
  /^(SPOKE_|OPENAI_|DATABASE_URL|REDIS_URL|APP_URL|API_URL|REALTIME_URL|HOST$|PORT$|LOG_|OTEL_)/

/** As in our images and units (Dockerfile); docs/performance.md says what it saves. All measured services have it. */
const nodeOptions = "--max-semi-space-size=64"

/**
 * Starts a program that prints `listening on URL`, or a worker, which has no URL. Returns `{url, pid, stop, output}`;
 * `output` is the end of what it printed.
 */
export const start = async (command, args, variables = {}, { timeoutMs = 60_000 } = {}) => {
  const child = spawn(command, args, {
    cwd: root,
    env: {
      ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !serviceVariables.test(name))),
      ...variables,
      NODE_OPTIONS: [nodeOptions, variables.NODE_OPTIONS].filter(Boolean).join(" ")
    },
    stdio: ["ignore", "pipe", "pipe"]
  })
  running.add(child)
  const ended = new Promise((resolve) => child.once("exit", resolve))
  ended.then(() => running.delete(child))
  let output = ""
  const url = await new Promise((resolve, reject) => {
    const fail = (why) => reject(new Error(`${path.basename(args[0] ?? command)} ${why}: ${output}`))
    const timer = setTimeout(() => fail("did not listen in time"), timeoutMs)
    const read = (chunk) => {
      // Only the beginning of the output, and its end after a failure, are needed.
      output = (output + chunk).slice(-20_000)
      const found = /listening on (\S+)|Spoke is working/.exec(output)
      if (found === null) return
      clearTimeout(timer)
      resolve(found[1])
    }
    child.stdout.on("data", read)
    child.stderr.on("data", read)
    child.once("exit", () => fail("ended before it listened"))
  })
  const stop = async (signal = "SIGTERM") => {
    const timer = setTimeout(() => child.kill("SIGKILL"), 20_000)
    child.kill(signal)
    await ended
    clearTimeout(timer)
  }
  return { url, pid: child.pid, stop, output: () => output }
}

/** A program of the benchmark itself. */
export const startScript = (file, args = [], variables = {}) =>
  start(process.execPath, [path.join(import.meta.dirname, file), ...args], variables)

/** `spoke serve` on a free port, as built in `folder`. `options` are those of {@link start}. */
export const startSpoke = (variables, args = [], folder = root, options = {}) =>
  start(
    process.execPath,
    [path.join(folder, "dist/main.js"), "serve", ...args],
    { PORT: "0", SPOKE_DRAIN_DELAY: "10 millis", LOG_LEVEL: "warning", ...variables },
    options
  )

export const freePort = () =>
  new Promise((resolve) => {
    const probe = createServer()
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address()
      probe.close(() => resolve(port))
    })
  })

export const temporaryFolder = () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "spoke-bench-"))
  fs.chmodSync(folder, 0o755)
  process.on("exit", () =>
    fs.rmSync(folder, { recursive: true, force: true, maxRetries: 3, retryDelay: 100 })
  )
  return folder
}

const stat = (pid) => {
  const text = fs.readFileSync(`/proc/${pid}/stat`, "utf8")
  return text.slice(text.lastIndexOf(")") + 2).split(" ")
}

/** A process and its descendants. */
const withDescendants = (pid) => {
  const children = new Map()
  for (const name of fs.readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue
    try {
      const parent = Number(stat(name)[1])
      children.set(parent, [...(children.get(parent) ?? []), Number(name)])
    } catch {
      // The process has ended.
    }
  }
  const found = [pid]
  for (let at = 0; at < found.length; at++) found.push(...(children.get(found[at]) ?? []))
  return found
}

const sumOverTree = (pid, read) =>
  withDescendants(pid).reduce((sum, each) => {
    try {
      return sum + read(each)
    } catch {
      return sum
    }
  }, 0)

/** Processor seconds that a process and its children have used, ended children included, in ticks of 10 ms. */
export const cpuOf = (pid) =>
  sumOverTree(pid, (each) => {
    const fields = stat(each)
    return [11, 12, 13, 14].reduce((sum, place) => sum + Number(fields[place]), 0) / 100
  })

/** Resident memory of a process and its children, in MiB. */
export const memoryOf = (pid) =>
  sumOverTree(pid, (each) => {
    const [, kilobytes] = /VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${each}/status`, "utf8")) ?? []
    return Number(kilobytes ?? 0) / 1_024
  })

/** Samples the memory of a process, in MiB: the current value, and at the end the maximum. */
export const watchMemory = (pid, every = 100) => {
  const now = memoryOf(pid)
  let peak = now
  const timer = setInterval(() => (peak = Math.max(peak, memoryOf(pid))), every)
  const end = () => {
    clearInterval(timer)
    return Math.max(peak, memoryOf(pid))
  }
  return { before: now, end }
}

/** Description of the machine. */
export const machine = () => ({
  node: process.version,
  cores: os.availableParallelism(),
  processor: os.cpus()[0]?.model ?? "unknown",
  memoryGiB: Math.round(os.totalmem() / 2 ** 30)
})

export const quantile = (values, part) =>
  values.length === 0
    ? null
    : values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.ceil(values.length * part) - 1)]
export const median = (values) => quantile(values, 0.5)
export const rounded = (value, digits = 3) => (value === null ? null : Number(value.toPrecision(digits)))

export const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds))

/** Polls until `probe` returns a value, for at most `limit` milliseconds. */
export const until = async (what, limit, probe, every = 50) => {
  const end = performance.now() + limit
  for (;;) {
    const found = await probe()
    if (found !== undefined) return found
    if (performance.now() > end) throw new Error(`${what} took too long`)
    await pause(every)
  }
}
