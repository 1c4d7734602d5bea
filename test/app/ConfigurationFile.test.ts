/** Configuration files that are modules. */
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/TestClock"
import { afterAll } from "vitest"
import * as ConfigurationFile from "../../src/app/cli/ConfigurationFile.ts"

const folder = Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-configuration-"))
afterAll(() => Fs.rmSync(folder, { recursive: true, force: true }))

it.effect("a module whose code never settles is given up after a minute", () =>
  Effect.gen(function* () {
    const file = Path.join(folder, "agents.mjs")
    Fs.writeFileSync(file, "await new Promise(() => {})\nexport default {}\n")
    const reading = yield* Effect.fork(Effect.flip(ConfigurationFile.load(file)))
    yield* TestClock.adjust("1 minute")
    const { message } = yield* Fiber.join(reading)
    expect(message).toBe(`${file} was not loaded within 1m: what does its code wait for?`)
  })
)
