import { execFile } from "node:child_process"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { pathToFileURL } from "node:url"
import { promisify } from "node:util"
import { describe, expect, it } from "vitest"
import { hasPgvector } from "../servers/PgvectorServer.ts"
import { binaries } from "../servers/PostgresServer.ts"

const run = promisify(execFile)
const root = Path.resolve(import.meta.dirname, "../..")
const { needs, parts, units, written } = await import(
  pathToFileURL(Path.join(root, "bench/scaling/page.mjs")).href
)

describe("The page on scaling", () => {
  it("shows what was measured, and calculates with it", () => {
    const page = Fs.readFileSync(Path.join(root, "docs/scaling.md"), "utf8")
    expect(Object.keys(parts())).toEqual(["units", "loads", "streams", "tenants", "chunks"])
    expect(written(page)).toBe(page)
  })

  it("needs more for more: CPU, memory, disk and connections by the load, processes by whichever limit comes first", () => {
    const read = (name: string) => JSON.parse(Fs.readFileSync(Path.join(root, `bench/${name}.json`), "utf8"))
    const of = units({ costs: read("costs"), streams: read("streams"), tenants: read("tenants") })
    const [one, ten] = [needs(of, 100), needs(of, 1_000)]
    for (const name of ["open", "service", "database", "diskADay"])
      expect(ten[name] / one[name]).toBeCloseTo(10)
    expect(ten.processes).toBeGreaterThanOrEqual(Math.ceil(ten.open / 2_048))
    expect(ten.processes * 0.6).toBeGreaterThanOrEqual(ten.service)
    expect(needs(of, 0.01)).toMatchObject({ processes: 1, databaseCores: 1, connections: 11 })
  })
})

describe.skipIf(binaries === undefined)("A process with many tenants", () => {
  // Blocks that a statement reads, not its time: 20 tenants and 1,000.
  it("sweeps without reading more, but for those that read a row for each agent, or seek new tenants", async () => {
    const { stdout } = await run(
      process.execPath,
      ["bench/scaling/tenants.mjs", "--quick", "--sizes", "20,1000"],
      {
        cwd: root,
        timeout: 280_000
      }
    )
    const record: { readonly growing: ReadonlyArray<{ readonly statement: string }> } = JSON.parse(stdout)
    const known = /agent_stats|insert into tenant_storage/u
    expect(record.growing.map(({ statement }) => statement).filter((text) => !known.test(text))).toEqual([])
  }, 300_000)
})

describe.skipIf(!hasPgvector)("The search of a small agent", () => {
  it("is measured while the chunks of others grow, and none fails", async () => {
    const options = { cwd: root, timeout: 280_000 }
    const { stdout } = await run(process.execPath, ["bench/scaling/chunks.mjs", "--quick"], options)
    expect(stdout).toMatch(/ 1000 [^]* 5000 /u)
  }, 300_000)
})
