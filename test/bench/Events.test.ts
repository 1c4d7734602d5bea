import * as fs from "node:fs"
import * as path from "node:path"
import { expect, it } from "@effect/vitest"

const root = path.resolve(import.meta.dirname, "../..")

interface Times {
  readonly p50Ms: number
  readonly p99Ms: number
  readonly p50Ratio: number
  readonly p99Ratio: number
}

it("The documentation tells what was measured of events for dead receivers", () => {
  const page = fs.readFileSync(path.join(root, "docs/events.md"), "utf8")
  const kept: {
    readonly queued: number
    readonly dead: ReadonlyArray<{ readonly case: string; readonly turn: Times; readonly event: Times }>
  } = JSON.parse(fs.readFileSync(path.join(root, "bench/events.json"), "utf8"))
  expect([kept.queued, kept.dead.length]).toEqual([10_000, 3])
  for (const { case: name, event, turn } of kept.dead) {
    const figures = [turn.p50Ms, turn.p50Ratio, event.p50Ms, event.p50Ratio, event.p99Ms, event.p99Ratio]
    expect(page).toContain(`| ${name} | ${figures.join(" | ")} |`)
  }
})
