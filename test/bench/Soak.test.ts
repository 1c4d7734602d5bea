import { execFile } from "node:child_process"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { promisify } from "node:util"
import { expect, it } from "vitest"

const run = promisify(execFile)
const isPositive = (count: number) => count > 0
const root = Path.resolve(import.meta.dirname, "../..")

// Far too short for trends, which `npm run bench:soak` is for: what is left at rest tells of what is never let go.
it.skipIf(process.platform !== "linux")(
  "Mixed load fails no request and leaves no descriptor, handle or timer behind",
  async () => {
    const folder = Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-soak-"))
    try {
      const out = Path.join(folder, "soak.json")
      const args = ["bench/soak.mjs", "--minutes=0.2", "--only=embedded", `--out=${out}`]
      // Its own verdict is on trends.
      await run(process.execPath, args, { cwd: root, timeout: 200_000 }).catch(() => undefined)
      const { bounds, engines } = JSON.parse(Fs.readFileSync(out, "utf8"))
      const { errors, kinds, received, requests, rest } = engines.embedded
      expect([errors, kinds]).toEqual([0, {}])
      expect(received).toEqual({ events: expect.toSatisfy(isPositive), orders: expect.toSatisfy(isPositive) })
      // However slow the machine is, it has been under load.
      expect(requests).toBeGreaterThan(5)
      const left = ["fds", "resources", "timers"].filter(
        (what) => rest.after[what] > rest.before[what] + bounds.atRest[what]
      )
      expect(left).toEqual([])
    } finally {
      Fs.rmSync(folder, { recursive: true })
    }
  },
  240_000
)
