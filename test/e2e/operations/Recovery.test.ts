/** The recovery of PostgreSQL in docs/backup.md, rehearsed on a server of its own. */
import { spawnSync } from "node:child_process"
import * as Path from "node:path"
import { describe, expect, it } from "vitest"
import { binaries } from "../../servers/PostgresServer.ts"
import { environment, root } from "../Spoke.ts"

describe.skipIf(binaries === undefined)("PostgreSQL with archived log and a standby", () => {
  it("goes back to a second with exactly the rows until then, and loses none that was acknowledged when a standby takes over", () => {
    const script = Path.join(root, "scripts/rehearse-recovery.mjs")
    const { status, stderr, stdout } = spawnSync(process.execPath, [script, binaries ?? ""], {
      encoding: "utf8",
      env: environment({})
    })
    expect([status, stderr]).toEqual([0, expect.not.stringContaining("Error")])
    expect(stdout).toMatch(/rows are \{"after":10,"before":10\}, as they should be/u)
    expect(stdout).toMatch(/all \d+ rows that were acknowledged are there/u)
  }, 240_000)
})
