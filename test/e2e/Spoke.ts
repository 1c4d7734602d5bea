/** Starts `spoke serve` in its own process, on a free port and with its own data directory. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { expect } from "vitest"
import { conformanceProblems } from "../http/Conformance.ts"
import { accountsUrl } from "../servers/Accounts.ts"
import { freePort } from "../servers/FreePort.ts"

export const root = Path.resolve(import.meta.dirname, "../..")
export const command = Path.join(root, "dist/main.js")

/** Whether printed shell commands can be run. Without a shell such tests are skipped visibly; in CI they fail. */
export const hasShell =
  process.env["CI"] === "true" ||
  spawnSync("bash", ["-c", "command -v curl"], { stdio: "ignore" }).status === 0

export const temporaryFolder = (): string => Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-e2e-"))

export const removeFolder = (folder: string): void =>
  Fs.rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 })

/** Environment variables of the machine that would change what is tested. */
const serviceVariables =
  /^(SPOKE_|OPENAI_|DATABASE_URL|REDIS_URL|APP_URL|API_URL|REALTIME_URL|HOST$|PORT$|LOG_)/

export const environment = (variables: Readonly<Record<string, string>>) => ({
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !serviceVariables.test(name))),
  // Suites that ask for it run under row level security.
  ...(process.env["SPOKE_TEST_TENANT_ROLE"] === undefined
    ? {}
    : { SPOKE_TENANT_ROLE: process.env["SPOKE_TEST_TENANT_ROLE"] }),
  ...variables
})

export interface Answer {
  readonly status: number
  readonly headers: Headers
  // Bodies are asserted on field by field.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  readonly body: any
}

export interface Spoke {
  readonly url: string
  /** The addresses of all processes that answer at {@link url}. */
  readonly each: ReadonlyArray<string>
  readonly dataDir: string
  readonly apiKey: string
  readonly operatorToken: string
  readonly process: ChildProcess
  /** The output so far. */
  readonly output: () => string
  readonly request: (method: string, path: string, options?: RequestOptions) => Promise<Answer>
  /** SIGTERM; resolves to the exit code. */
  readonly stop: () => Promise<number | null>
  /** SIGKILL. */
  readonly kill: () => Promise<void>
}

export interface RequestOptions {
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** Null: none. */
  readonly key?: string | null
}

const readJson = (file: string): Readonly<Record<string, string>> =>
  Fs.existsSync(file) ? JSON.parse(Fs.readFileSync(file, "utf8")) : {}

/** A request without an answer fails after this time, so that the test's error names it. */
const maxAnswerMs = 120_000

/** A start fails after this time. */
const maxStartMs = 180_000

/** Sends requests to `url`, with `apiKey` unless a request has its own key. */
export const requester =
  (url: string, apiKey: string): Spoke["request"] =>
  async (method, path, options = {}) => {
    const key = options.key === undefined ? apiKey : options.key
    const response = await fetch(`${url}${path}`, {
      method,
      signal: AbortSignal.timeout(maxAnswerMs),
      headers: {
        ...(key === null ? {} : { "x-api-key": key }),
        ...(options.body === undefined ? {} : { "content-type": "application/json" }),
        ...options.headers
      },
      ...(options.body === undefined ? {} : { body: JSON.stringify(options.body) })
    })
    const text = await response.text()
    const body = text === "" ? null : JSON.parse(text)
    // Every suite also checks that the answer conforms to the API description.
    expect(
      conformanceProblems(method, path, { status: response.status, headers: response.headers, json: body })
    ).toEqual([])
    return { status: response.status, headers: response.headers, body }
  }

/**
 * `SPOKE_TEST_ENGINES=production`: a suite's requests go to two servers in turn, with two workers, one PostgreSQL and one
 * Redis. Suites about the embedded store do not run this way (.ci/run lists the others).
 */
export const production = process.env["SPOKE_TEST_ENGINES"] === "production"

/** Starts one process and resolves once it prints that it listens. */
const startProcess = async (
  dataDir: string,
  variables: Readonly<Record<string, string>>,
  args: ReadonlyArray<string>,
  program: string
): Promise<Spoke> => {
  // A server with the address of a proxy does not print its own.
  const port = variables["APP_URL"] === undefined ? 0 : await freePort()
  const child = spawn(process.execPath, [program, "serve", ...args], {
    cwd: root,
    env: environment({
      SPOKE_DATA_DIR: dataDir,
      PORT: String(port),
      SPOKE_DRAIN_DELAY: "50 millis",
      GRAPH_API_URL: await accountsUrl(),
      ...variables
    }),
    stdio: ["ignore", "pipe", "pipe"]
  })
  const ended = once(child, "exit")
  let output = ""
  let limit: NodeJS.Timeout | undefined
  const listening = new Promise<string>((resolve, reject) => {
    const read = (chunk: Buffer) => {
      output += chunk.toString()
      const [, url] = /Spoke is listening on (\S+)[\s\S]*?\n\n/u.exec(output) ?? []
      if (url !== undefined) resolve(url)
      // A worker has no address.
      if (output.includes("Spoke is working")) resolve("")
    }
    child.stdout.on("data", read)
    child.stderr.on("data", read)
    void ended.then(() => reject(new Error(`The server ended before it listened:\n${output}`)))
    limit = setTimeout(() => reject(new Error(`The server does not listen:\n${output}`)), maxStartMs)
  })
  const printed = await listening.finally(() => clearTimeout(limit))
  const url = port === 0 || printed === "" ? printed : `http://127.0.0.1:${port}`
  const { apiKey = "" } = readJson(Path.join(dataDir, "credentials.json"))
  const kept = readJson(Path.join(dataDir, "secrets.json"))
  const operatorToken = variables["SPOKE_OPERATOR_TOKEN"] ?? kept["operatorToken"] ?? ""
  return {
    url,
    each: [url],
    dataDir,
    apiKey,
    operatorToken,
    process: child,
    output: () => output,
    request: requester(url, apiKey),
    stop: async () => {
      child.kill("SIGTERM")
      await ended
      return child.exitCode
    },
    kill: async () => {
      child.kill("SIGKILL")
      await ended
    }
  }
}

/**
 * Starts a server. An empty data directory first gets the data of a first start, with a short sample source (FirstStart.ts).
 * `program` is its main file.
 */
export const start = async (
  dataDir: string,
  variables: Readonly<Record<string, string>> = {},
  args: ReadonlyArray<string> = [],
  program = command
): Promise<Spoke> => {
  if (production && args.length === 0) {
    const { startProduction } = await import("./Engines.ts")
    return startProduction(dataDir, variables)
  }
  const { prepare } = await import("./Prepared.ts")
  return startProcess(dataDir, variables, args, prepare(dataDir, variables, program))
}

/** As {@link start}, but with a real first start on an empty data directory, which reads the whole documentation. */
export const startFresh = async (
  dataDir: string,
  variables: Readonly<Record<string, string>> = {},
  args: ReadonlyArray<string> = [],
  program = command
): Promise<Spoke> => {
  if (production && args.length === 0) {
    const { startProduction } = await import("./Engines.ts")
    return startProduction(dataDir, variables, true)
  }
  return startProcess(dataDir, variables, args, program)
}

/** Runs the command to its end. */
export const run = async (
  args: ReadonlyArray<string>,
  variables: Readonly<Record<string, string>>,
  program: readonly [string, ...ReadonlyArray<string>] = [process.execPath, command]
): Promise<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }> => {
  const [file, ...first] = program
  const child = spawn(file, [...first, ...args], {
    cwd: root,
    env: environment(variables),
    stdio: ["ignore", "pipe", "pipe"]
  })
  let stdout = ""
  let stderr = ""
  child.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString()))
  child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()))
  await once(child, "close")
  return { code: child.exitCode, stdout, stderr }
}

/** Starts a command that runs until it is stopped. `output` is what it has printed so far. */
export const startCommand = (args: ReadonlyArray<string>, variables: Readonly<Record<string, string>>) => {
  const child = spawn(process.execPath, [command, ...args], {
    cwd: root,
    env: environment(variables),
    stdio: ["ignore", "pipe", "pipe"]
  })
  const output = { stdout: "", stderr: "" }
  child.stdout.on("data", (chunk: Buffer) => (output.stdout += chunk.toString()))
  child.stderr.on("data", (chunk: Buffer) => (output.stderr += chunk.toString()))
  const closed = once(child, "close")
  const stop = async () => {
    child.kill("SIGINT")
    await closed
  }
  return { output, stop }
}

/** Repeats `ask` until `done` accepts the answer. */
export const until = async <A>(
  ask: () => Promise<A>,
  done: (answer: A) => boolean,
  timeoutMillis = 60_000
): Promise<A> => {
  const end = Date.now() + timeoutMillis
  for (;;) {
    const answer = await ask()
    if (done(answer)) return answer
    if (Date.now() > end) throw new Error(`Timed out; the last answer: ${JSON.stringify(answer)}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** Waits until the ingestion job has ended. */
export const waitForJob = (spoke: Spoke, jobId: string, timeoutMillis?: number): Promise<Answer> =>
  until(
    () => spoke.request("GET", `/v1/ingestion-jobs/${jobId}`),
    ({ body }) => !["QUEUED", "RUNNING"].includes(body.data.status),
    timeoutMillis
  )
