/**
 * The data of a first start, made once for all tests: a copy of the built program with two pages of the documentation, and
 * the data directory of its first start. Reading and embedding the whole documentation takes most of a minute of CPU time,
 * which each suite would spend again. Runs before the tests, outside of their workers.
 */
import { spawn } from "node:child_process"
import { once } from "node:events"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { setTimeout as delay } from "node:timers/promises"

const root = Path.resolve(import.meta.dirname, "../..")

/** The login of the owner. */
export const owner = { SPOKE_ADMIN_EMAIL: "owner@example.com", SPOKE_ADMIN_PASSWORD: "correct horse battery" }

/** The pages that are read. They answer the question that the first start proposes. */
export const pages = ["getting-started.md", "sources.md"]

/** Milliseconds; long, because the machine may be loaded. */
const timeoutMs = 300_000

/** Copies the built program to `folder`, with only {@link pages} as documentation. Returns its main file. */
const makeProgram = (folder: string): string => {
  for (const name of ["dist", "migrations", "package.json"]) {
    Fs.cpSync(Path.join(root, name), Path.join(folder, name), { recursive: true })
  }
  Fs.mkdirSync(Path.join(folder, "docs"))
  for (const name of pages) Fs.copyFileSync(Path.join(root, "docs", name), Path.join(folder, "docs", name))
  Fs.symlinkSync(Path.join(root, "node_modules"), Path.join(folder, "node_modules"))
  return Path.join(folder, "dist/main.js")
}

/** Starts `program` on the empty `dataDir`, waits until all vectors are there, and stops it. */
const makeData = async (program: string, dataDir: string): Promise<void> => {
  const server = spawn(process.execPath, [program, "serve"], {
    env: {
      PATH: process.env["PATH"],
      PORT: "0",
      SPOKE_DATA_DIR: dataDir,
      SPOKE_DRAIN_DELAY: "50 millis",
      ...owner,
      ...(process.env["SPOKE_TEST_TENANT_ROLE"] === undefined
        ? {}
        : { SPOKE_TENANT_ROLE: process.env["SPOKE_TEST_TENANT_ROLE"] })
    },
    stdio: ["ignore", "pipe", "inherit"]
  })
  const ended = once(server, "exit")
  let output = ""
  const listening = new Promise<string>((resolve, reject) => {
    server.stdout.on("data", (chunk: Buffer) => {
      output += chunk.toString()
      const [, url] = /Spoke is listening on (\S+)[\s\S]*?\n\n/u.exec(output) ?? []
      if (url !== undefined) resolve(url)
    })
    void ended.then(() => reject(new Error(`The first start failed:\n${output}`)))
  })
  const limit = setTimeout(() => server.kill("SIGKILL"), timeoutMs)
  try {
    const url = await listening
    const { apiKey } = JSON.parse(Fs.readFileSync(Path.join(dataDir, "credentials.json"), "utf8"))
    const get = async (path: string) =>
      JSON.parse(await (await fetch(`${url}${path}`, { headers: { "x-api-key": apiKey } })).text()).data
    const [source] = (await get("/v1/sources")).sources
    const isEmbedded = async () => {
      const { chunks, embedded } = await get(`/v1/sources/${source.id}/embedding`)
      return chunks > 0 && embedded === chunks
    }
    while (!(await isEmbedded())) await delay(50)
    server.kill("SIGTERM")
    await ended
  } finally {
    clearTimeout(limit)
    server.kill("SIGKILL")
  }
}

export interface FirstStart {
  readonly program: string
  /** Null if too few suites would copy it. */
  readonly data: string | null
}

/** Makes both in the new `folder`. `suites` is the number of suites that start servers. */
export const make = async (folder: string, suites: number): Promise<FirstStart> => {
  const program = makeProgram(Path.join(folder, "package"))
  if (suites < 3) return { program, data: null }
  const data = Path.join(folder, "data")
  await makeData(program, data)
  return { program, data }
}
