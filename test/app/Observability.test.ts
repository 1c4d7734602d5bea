/** Log lines on a terminal. */
import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { afterEach, vi } from "vitest"
import { layer } from "../../src/app/telemetry/Observability.ts"

afterEach(() => void vi.restoreAllMocks())

const loggedBy = (logging: Effect.Effect<void>) =>
  Effect.gen(function* () {
    const written: Array<string> = []
    vi.spyOn(process.stderr, "write").mockImplementation((text) => written.push(String(text)) > 0)
    const settings = {
      accessLog: false,
      logFormat: "pretty",
      logLevel: "info",
      telemetry: null
    } as const
    yield* Effect.provide(logging, layer(settings))
    return written
  })

it.effect(
  "Text of others in a line on a terminal neither controls the terminal nor looks like another line",
  () =>
    Effect.gen(function* () {
      const forged = "x\r\n12:00:00 \u001b[36minfo \u001b[0m All is well \u001b]0;title\u0007\u009b2J"
      const written = yield* loggedBy(
        Effect.logError("A job failed", forged, new Error(forged)).pipe(
          Effect.annotateLogs({ reason: forged })
        )
      )
      expect(written).toHaveLength(1)
      const [head = "", ...rest] = (written[0] ?? "").trimEnd().split("\n")
      expect(head.slice("00:00:00".length)).toBe(" \u001b[31merror\u001b[0m A job failed x")
      for (const line of rest) expect(line).toMatch(/^ {2}[^\p{Cc}]*$/u)
      expect(written[0]).toContain("All is well")
    })
)
