/** The image of the Dockerfile, built and started without a registry: `npm run test:image`, as root on Debian 12. */
import { spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { describe, expect, it } from "vitest"
import { has, root } from "./Tools.ts"

const isDebian12 = (() => {
  try {
    return /^VERSION_CODENAME=bookworm$/mu.test(Fs.readFileSync("/etc/os-release", "utf8"))
  } catch {
    return false
  }
})()
const isPossible =
  process.env["SPOKE_TEST_IMAGE"] !== undefined &&
  isDebian12 &&
  process.getuid?.() === 0 &&
  has("buildah", ["--version"]) &&
  has("mmdebstrap", ["--version"])

describe.skipIf(!isPossible)("The image", () => {
  it("is small, has what its bill of materials names, serves as an ordinary user without a shell, and reads documents and pictures", () => {
    const script = Path.join(root, "scripts/rehearse-image.mjs")
    const { status, stderr, stdout } = spawnSync(process.execPath, [script], { encoding: "utf8" })
    expect([status, stderr]).toEqual([0, ""])
    const megabytes = Number(/it has ([\d.]+) MB/u.exec(stdout)?.[1])
    expect(megabytes).toBeGreaterThan(100)
    expect(megabytes).toBeLessThanOrEqual(250)
    for (const step of ["read handbook.pdf", "read notice.png", "ended with 0 on SIGTERM"])
      expect(stdout).toContain(step)
  }, 1_800_000)
})
