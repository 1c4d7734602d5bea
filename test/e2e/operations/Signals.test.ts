/** Repeated signals to a server. */
import { once } from "node:events"
import { setTimeout as delay } from "node:timers/promises"
import { afterAll, expect, it } from "vitest"
import { removeFolder, start, temporaryFolder } from "../Spoke.ts"

const folder = temporaryFolder()
afterAll(() => removeFolder(folder))

const draining = /Draining/u

/** Starts a server, and signals it once it drains because of a first signal. */
const signalled = async (signal: "SIGINT" | "SIGTERM", drain: string, later: number) => {
  const spoke = await start(folder, { SPOKE_EMBEDDING_MODEL: "offline", SPOKE_DRAIN_DELAY: drain })
  const ended = once(spoke.process, "exit")
  spoke.process.kill(signal)
  while (!draining.test(spoke.output())) await delay(5)
  await delay(later)
  const again = performance.now()
  spoke.process.kill(signal)
  const [code, by] = await ended
  return { code, by, waited: performance.now() - again }
}

it.each(["SIGINT", "SIGTERM"] as const)(
  "%s that comes twice, as from npm and the terminal, still ends everything in order",
  async (signal) => {
    const { code, waited } = await signalled(signal, "500 millis", 50)
    expect(code).toBe(0)
    expect(waited).toBeGreaterThan(300)
  },
  120_000
)

it("SIGINT again, after a second, is meant: it ends at once", async () => {
  const { by, waited } = await signalled("SIGINT", "60 seconds", 1_500)
  expect(by).toBe("SIGINT")
  expect(waited).toBeLessThan(20_000)
}, 120_000)
