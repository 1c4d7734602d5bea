/** Payloads as the providers document and send them, each with what is to be made of it. */
import * as DateTime from "effect/DateTime"
import * as Schema from "effect/Schema"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { describe, expect, it } from "vitest"
import { InboundEvent } from "../../src/domain/channels/Channel.ts"
import { isRecorded, normalizers } from "./Normalizers.ts"

const folder = Path.join(import.meta.dirname, "../fixtures/channels")
const now = DateTime.unsafeMake("2026-11-21T08:00:00Z")
const encode = Schema.encodeSync(InboundEvent)

const names = Fs.readdirSync(folder).filter((name) => name.endsWith(".json"))

describe("Deliveries of providers", () => {
  it("are recorded for every kind that is read", () => {
    expect(names.length).toBeGreaterThan(40)
  })

  for (const name of names) {
    const { says, channel, body, arrivals, statuses, ignored } = JSON.parse(
      Fs.readFileSync(Path.join(folder, name), "utf8")
    )
    it(`${name.replace(".json", "")}: ${says}`, () => {
      if (!isRecorded(channel)) throw new Error("The fixture names no channel.")
      const made = normalizers[channel](body, now)
      const events = made.arrivals.map(({ event }) => encode(event))
      expect(events).toHaveLength(arrivals.length)
      expect(events).toMatchObject(arrivals)
      expect(made.statuses).toHaveLength(statuses.length)
      expect(made.statuses).toMatchObject(statuses)
      expect(made.ignored).toBe(ignored)
      // What it was made from goes with it, and can be stored.
      for (const { raw } of made.arrivals) expect(JSON.stringify(raw).length).toBeGreaterThan(10)
    })
  }
})
