/**
 * What a first start leaves, made once a run and copied: a data directory, and on PostgreSQL a template of databases. Its
 * sample source is two pages of the documentation, with their vectors: to read and embed all pages takes most of a
 * minute of CPU time, which each suite would spend beside its tests.
 */
import * as Fs from "node:fs"
import * as Path from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { inject } from "vitest"
import { once } from "../TestDatabase.ts"
import { command, requester, root, type Spoke, startFresh, until } from "./Spoke.ts"

/** Whoever owns it. A suite that names somebody else gets a first start of its own. */
export const owner = { SPOKE_ADMIN_EMAIL: "owner@example.com", SPOKE_ADMIN_PASSWORD: "correct horse battery" }

/** What is read in. They answer the question that the first start proposes. */
export const pages = ["getting-started.md", "sources.md"]

/** The built program in `folder`, beside {@link pages} alone. */
const makeProgram = (folder: string): string => {
  for (const name of ["dist", "migrations", "package.json"]) {
    Fs.cpSync(Path.join(root, name), Path.join(folder, name), { recursive: true })
  }
  Fs.mkdirSync(Path.join(folder, "docs"))
  for (const name of pages) Fs.copyFileSync(Path.join(root, "docs", name), Path.join(folder, "docs", name))
  Fs.symlinkSync(Path.join(root, "node_modules"), Path.join(folder, "node_modules"))
  return Path.join(folder, "dist/main.js")
}

/** Waits until all that the key's agent has is read and embedded. */
export const embedded = async (spoke: Spoke, apiKey = spoke.apiKey): Promise<void> => {
  const request = requester(spoke.url, apiKey)
  const { body } = await request("GET", "/v1/sources")
  for (const { id } of body.data.sources) {
    await until(
      () => request("GET", `/v1/sources/${id}/embedding`),
      ({ body: { data } }) => data.chunks > 0 && data.embedded === data.chunks
    )
  }
}

interface Prepared {
  /** The main file of the built program, beside {@link pages} alone. */
  readonly program: string
  /** A data directory to copy. */
  readonly data: string
}

const make = async (folder: string): Promise<void> => {
  const program = makeProgram(Path.join(folder, "package"))
  const made = Path.join(folder, "made")
  const spoke = await startFresh(made, owner, [], program)
  await embedded(spoke)
  await spoke.stop()
  // Whole from the moment it is there.
  Fs.renameSync(made, Path.join(folder, "data"))
}

/** One worker makes them, the others wait. */
const prepared = (): Promise<Prepared> =>
  once("prepared", async () => {
    const folder = Path.join(inject("servers"), "prepared")
    const data = Path.join(folder, "data")
    const failure = Path.join(folder, "failure")
    try {
      Fs.mkdirSync(folder)
      await make(folder).catch((problem: unknown) => {
        Fs.writeFileSync(failure, String(problem))
      })
    } catch {
      while (!Fs.existsSync(data) && !Fs.existsSync(failure)) await delay(50)
    }
    if (Fs.existsSync(failure)) throw new Error(Fs.readFileSync(failure, "utf8"))
    return { program: Path.join(folder, "package/dist/main.js"), data }
  })

/** Whether a first start with `variables` would leave the same. */
export const isOrdinary = (variables: Readonly<Record<string, string>>): boolean =>
  !["DATABASE_URL", "SPOKE_SECRET", "SPOKE_ARTIFACTS"].some((name) => name in variables) &&
  Object.entries(owner).every(([name, value]) => (variables[name] ?? value) === value)

/**
 * Gives an empty data directory what a first start would leave. Where `variables` ask for something else, answers the
 * program that makes it with the same short sample source.
 */
export const prepare = async (
  dataDir: string,
  variables: Readonly<Record<string, string>>,
  program: string
): Promise<string> => {
  if (variables["DATABASE_URL"] !== undefined || Fs.existsSync(Path.join(dataDir, "database"))) return program
  const made = await prepared()
  if (!isOrdinary(variables)) return program === command ? made.program : program
  Fs.cpSync(made.data, dataDir, { recursive: true, mode: Fs.constants.COPYFILE_FICLONE })
  return program
}
