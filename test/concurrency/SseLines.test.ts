import { expect, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import { describe } from "vitest"
import { SseLines } from "../../src/concurrency/SseLines.ts"
import { cpuMillis } from "../CpuTime.ts"

const encode = (text: string) => new TextEncoder().encode(text)

const cut = (bytes: Uint8Array, places: ReadonlyArray<number>): ReadonlyArray<Uint8Array> => {
  const cuts = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b)
  return [0, ...cuts].map((from, index) => bytes.slice(from, cuts[index] ?? bytes.length))
}

const readAll = (pieces: ReadonlyArray<Uint8Array>, limit = 1_000_000) => {
  const lines = new SseLines(limit)
  return { events: pieces.flatMap((piece) => lines.push(piece) ?? ["<over the limit>"]), rest: lines.end() }
}

const dataLine = FastCheck.string({ unit: "grapheme", maxLength: 12 }).map((text) =>
  text.replaceAll(/[\r\n\uFEFF]/g, "·").toWellFormed()
)
const noise = FastCheck.constantFrom(": heartbeat", "event: ping", "id: 7", "retry: 10", "unknown", "")

describe("SseLines", () => {
  it.prop(
    "events are the same wherever the bytes are cut and however lines end",
    [
      FastCheck.array(FastCheck.array(dataLine, { minLength: 1, maxLength: 3 }), { maxLength: 6 }),
      noise,
      FastCheck.constantFrom("\n", "\r\n", "\r"),
      FastCheck.array(FastCheck.nat(), { maxLength: 12 })
    ],
    ([events, between, newline, places]) => {
      const text = events
        .map((data) => [between, ...data.map((line) => `data: ${line}`), "", ""].join(newline))
        .join("")
      const { events: read, rest } = readAll(cut(encode(text), places))
      expect(read).toEqual(events.map((data) => data.join("\n")))
      expect(rest).toBe(null)
    }
  )

  it.prop(
    "any bytes at all are read without a failure",
    [FastCheck.uint8Array({ maxLength: 300 }), FastCheck.array(FastCheck.nat(), { maxLength: 6 })],
    ([bytes, places]) => {
      const whole = readAll([bytes])
      const pieces = readAll(cut(bytes, places))
      expect(pieces).toEqual(whole)
    }
  )

  it("takes data with and without a space after the colon, and keeps further spaces", () => {
    const { events } = readAll([encode("data:a\n\ndata: b\n\ndata:  c\n\ndata\n\n")])
    expect(events).toEqual(["a", "b", " c", ""])
  })

  it("gives an event that lacks its blank line at the end", () => {
    expect(readAll([encode("data: a\n\ndata: [DONE]")])).toEqual({ events: ["a"], rest: "[DONE]" })
  })

  it("refuses a line or an event over the limit instead of buffering it", () => {
    const line = new SseLines(100)
    expect(line.push(encode(`data: ${"x".repeat(50)}`))).toEqual([])
    expect(line.push(encode("x".repeat(60)))).toBe(null)
    const event = new SseLines(100)
    expect(event.push(encode(`data: ${"x".repeat(60)}\ndata: ${"x".repeat(60)}\n`))).toBe(null)
  })

  it("takes time linear in the bytes, in one piece or in many", () => {
    const events = "data: {}\n\n".repeat(400_000)
    const began = cpuMillis()
    expect(readAll([encode(events)], 8_000_000).events).toHaveLength(400_000)
    const long = new SseLines(8_000_000)
    const piece = encode("x".repeat(64))
    long.push(encode("data: "))
    for (let count = 0; count < 100_000; count++) expect(long.push(piece)?.length).toBe(0)
    expect(long.push(encode("\n\n"))?.[0]?.length).toBe(6_400_000)
    // Quadratic splitting takes minutes here, whatever the machine.
    expect(cpuMillis() - began).toBeLessThan(10_000)
  })
})
