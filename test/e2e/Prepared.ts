/** Fills data directories with the data of a first start (FirstStart.ts). */
import * as Fs from "node:fs"
import * as Path from "node:path"
import { inject } from "vitest"
import { owner } from "./FirstStart.ts"
import { command, requester, type Spoke, until } from "./Spoke.ts"

/** Waits until all sources of the key's agent are read and embedded. */
export const waitUntilEmbedded = async (spoke: Spoke, apiKey = spoke.apiKey): Promise<void> => {
  const request = requester(spoke.url, apiKey)
  const { body } = await request("GET", "/v1/sources")
  for (const { id } of body.data.sources) {
    await until(
      () => request("GET", `/v1/sources/${id}/embedding`),
      ({ body: { data } }) => data.chunks > 0 && data.embedded === data.chunks
    )
  }
}

/** Whether a first start with `variables` would make the same data. */
export const usesDefaults = (variables: Readonly<Record<string, string>>): boolean =>
  !["DATABASE_URL", "SPOKE_SECRET", "SPOKE_ARTIFACTS"].some((name) => name in variables) &&
  Object.entries(owner).every(([name, value]) => (variables[name] ?? value) === value)

/**
 * Fills an empty data directory with the data of a first start, and returns `program`. If `variables` require other data,
 * returns a program that makes it with the same short sample source.
 */
export const prepare = (
  dataDir: string,
  variables: Readonly<Record<string, string>>,
  program: string
): string => {
  if (variables["DATABASE_URL"] !== undefined || Fs.existsSync(Path.join(dataDir, "database"))) return program
  const made = inject("firstStart")
  if (made === null || program !== command) return program
  if (made.data === null || !usesDefaults(variables)) return made.program
  Fs.cpSync(made.data, dataDir, { recursive: true, mode: Fs.constants.COPYFILE_FICLONE })
  return program
}
