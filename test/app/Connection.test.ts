/** Where a command gets its server and secret from. */
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { afterAll, describe, vi } from "vitest"
import { connect, operatorOf } from "../../src/app/cli/Connection.ts"
import * as DataDirectory from "../../src/app/DataDirectory.ts"

const dataDir = Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-connection-"))
const empty = Path.join(dataDir, "empty")
const own = "http://127.0.0.1:3000"
const other = "https://other.example"
afterAll(() => {
  vi.unstubAllEnvs()
  Fs.rmSync(dataDir, { recursive: true, force: true })
})

/** In a folder in which a server has been started. */
const beside = <A, E, R>(effect: Effect.Effect<A, E, R>, folder = dataDir) =>
  Effect.gen(function* () {
    vi.stubEnv("SPOKE_DATA_DIR", folder)
    yield* DataDirectory.credentials.write(dataDir, { url: own, apiKey: Redacted.make("spk_own") })
    yield* DataDirectory.secrets.write(dataDir, {
      secret: Redacted.make("s".repeat(40)),
      operatorToken: Redacted.make("operator")
    })
    return yield* effect
  }).pipe(Effect.provide(FetchHttpClient.layer))

describe("The stored secrets", () => {
  it.live("are used at the stored address, however it is written", () =>
    Effect.gen(function* () {
      for (const url of [undefined, "", own, `${own}/`, `${own}/v1`]) {
        const { secret } = yield* beside(operatorOf({ url }))
        expect(Redacted.value(secret)).toBe("operator")
        expect((yield* beside(connect({ url }))).base).toBe(own)
      }
      for (const url of ["http://localhost:3000", "http://[::1]:3000/v1"]) {
        expect(Redacted.value((yield* beside(operatorOf({ url }))).secret)).toBe("operator")
      }
    })
  )

  it.live("are not sent to another server", () =>
    Effect.gen(function* () {
      const commands = [
        (url: string) => Effect.asVoid(connect({ url })),
        (url: string) => Effect.asVoid(operatorOf({ url }))
      ]
      for (const command of commands) {
        for (const url of [other, "http://127.0.0.1:3001", "not an address"]) {
          const { message } = yield* Effect.flip(beside(command(url)))
          expect(message).toContain(`The secrets there are for ${own} only.`)
        }
        const { message } = yield* Effect.flip(beside(command(other), empty))
        expect(message).toMatch(new RegExp(`Looked in ${empty}\\.$`, "u"))
      }
    })
  )

  it.live("give way to a secret that is named", () =>
    Effect.gen(function* () {
      const { secret, url } = yield* beside(
        operatorOf({ url: other, operatorToken: Redacted.make("theirs") })
      )
      expect([Redacted.value(secret), url]).toEqual(["theirs", other])
      expect((yield* beside(connect({ url: other, key: Redacted.make("spk_theirs") }))).base).toBe(other)
    })
  )
})
