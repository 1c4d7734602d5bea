/** Malformed and unusual webhooks, from a seed that repeats a failure. */
import * as Cause from "effect/Cause"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FastCheck from "effect/FastCheck"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { createHmac } from "node:crypto"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { describe, expect, it, vi } from "vitest"
import * as BuiltIn from "../../src/channels/BuiltIn.ts"
import { Graph } from "../../src/channels/Graph.ts"
import { GraphFiles } from "../../src/channels/GraphFiles.ts"
import { normalizers, type Recorded } from "./Normalizers.ts"
import { isSigned } from "../../src/channels/Signature.ts"
import { phoneOf } from "../../src/channels/whatsapp/Contact.ts"
import * as Json from "../../src/domain/Json.ts"
import { InboundEvent } from "../../src/domain/channels/Channel.ts"
import { layer as layerSecretBox } from "../../src/capabilities/SecretBox/DerivedKeys.ts"
import { ChannelAdapters } from "../../src/capabilities/ChannelAdapters.ts"
import { ChannelStore } from "../../src/store/channels/Channels.ts"
import { channelSettings } from "./Settings.ts"
import { InboundEvents } from "../../src/store/channels/InboundEvents.ts"
import { WebhookIngress } from "../../src/usecases/channels/WebhookIngress.ts"
import { DeliveryReceipts } from "../../src/usecases/channels/DeliveryReceipts.ts"

const folder = Path.join(import.meta.dirname, "../fixtures/channels")
const fixtures: ReadonlyArray<{ readonly channel: Recorded; readonly body: unknown }> = Fs.readdirSync(
  folder
).map((name) => JSON.parse(Fs.readFileSync(Path.join(folder, name), "utf8")))

const now = DateTime.unsafeMake("2026-11-21T08:00:00Z")
const encode = Schema.encodeSync(InboundEvent)
const key = "the app secret of the fuzzer"
const secret = Redacted.make(key)
const signed = (body: Uint8Array) => `sha256=${createHmac("sha256", key).update(body).digest("hex")}`

const isUnauthorized = ({ _tag }: { readonly _tag: string }) => _tag === "UNAUTHORIZED"

/** mulberry32 */
const random = (seed: number) => () => {
  seed = (seed + 0x6d2b79f5) | 0
  let t = Math.imul(seed ^ (seed >>> 15), 1 | seed)
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
  return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
}
type Random = () => number
const pick = <A>(next: Random, values: ReadonlyArray<A>): A => {
  const value = values[Math.floor(next() * values.length)]
  if (value === undefined) throw new Error("There is nothing to pick.")
  return value
}

const junk = (next: Random): unknown =>
  pick<() => unknown>(next, [
    () => null,
    () => true,
    () => -1,
    () => 1e308,
    () => Number.MAX_SAFE_INTEGER,
    () => "",
    () => " ",
    () => "\u0000",
    () => "\ud800x",
    () => "x".repeat(600),
    () => "📎".repeat(300),
    () => "9".repeat(40),
    () => "US.1",
    () => "out_01jz0000000000000000000000",
    () => "constructor",
    () => [],
    () => {},
    () => [[[]]],
    () => [null, 1, "x", {}],
    () => ({}),
    () => ({ id: {}, type: [], text: { body: 7 } }),
    () => JSON.parse('{"__proto__": {"type": "text"}, "id": "x"}')
  ])()

/** A copy in which one node, anywhere, is replaced, dropped, renamed or doubled. */
const mutated = (next: Random, value: unknown): unknown => {
  if (typeof value !== "object" || value === null || next() < 0.08) return junk(next)
  if (Array.isArray(value)) {
    const place = Math.floor(next() * value.length)
    const kind = next()
    if (kind < 0.1) return value.filter((_, at) => at !== place)
    if (kind < 0.2) return [...value, ...value]
    return value.map((item, at) => (at === place ? mutated(next, item) : item))
  }
  const entries = Object.entries(value)
  const place = Math.floor(next() * entries.length)
  const kind = next()
  return Object.fromEntries(
    entries.flatMap(([name, item], at): ReadonlyArray<[string, unknown]> => {
      if (at !== place) return [[name, item]]
      if (kind < 0.08) return []
      if (kind < 0.14) return [[pick(next, ["messages", "statuses", "from", "type", "id", "message"]), item]]
      return [[name, mutated(next, item)]]
    })
  )
}

describe("The readers of deliveries", () => {
  it("make something storable, or nothing, of 100,000 mutated payloads, and never crash", () => {
    const next = random(20_261_121)
    let made = 0
    let ignored = 0
    for (let turn = 0; turn < 100_000; turn++) {
      const { channel, body } = pick(next, fixtures)
      const times = 1 + Math.floor(next() * 3)
      let payload = body
      for (let time = 0; time < times; time++) payload = mutated(next, payload)
      const result = normalizers[channel](payload, now)
      ignored += result.ignored
      for (const { event } of result.arrivals) {
        made++
        const text = JSON.stringify(encode(event))
        const aliases = event._tag === "Message" ? event.from : event.aliases
        const fits =
          !text.includes("\\u0000") &&
          text.isWellFormed() &&
          aliases.every(({ kind, value }) => kind !== "phone" || phoneOf(value) === value) &&
          (event._tag !== "Message" || (event.messageId !== "" && event.messageId.length <= 512))
        if (!fits) expect(event).toBe("storable")
      }
    }
    expect(made).toBeGreaterThan(20_000)
    expect(ignored).toBeGreaterThan(20_000)
  }, 60_000)

  it("make something storable of any JSON whatever", () => {
    FastCheck.assert(
      FastCheck.property(FastCheck.jsonValue(), FastCheck.boolean(), (value, whatsapp) => {
        const channel = whatsapp ? "whatsapp" : "messenger"
        const entry = whatsapp ? { id: "1", changes: [{ value }] } : { id: "1", messaging: [value] }
        for (const body of [value, { entry: value }, { entry: [value] }, { entry: [entry] }]) {
          normalizers[channel](body, now).arrivals.map(({ event }) => encode(event))
        }
      }),
      { seed: 7, numRuns: 2_000 }
    )
  })

  it("lose no message of a batch to a broken one beside it", () => {
    const text = (id: string) => ({
      from: "491700000001",
      id,
      timestamp: "1767225600",
      type: "text",
      text: { body: id }
    })
    FastCheck.assert(
      FastCheck.property(FastCheck.array(FastCheck.jsonValue(), { maxLength: 5 }), (broken) => {
        const messages = [text("first"), ...broken.filter((item) => typeof item !== "object"), text("last")]
        const statuses = [...broken, { id: "s", status: "read" }]
        const value = { metadata: { phone_number_id: "1" }, messages, statuses, contacts: broken }
        const made = normalizers.whatsapp({ entry: [...broken, { changes: [...broken, { value }] }] }, now)
        expect(made.arrivals.map(({ event }) => event._tag === "Message" && event.messageId)).toEqual([
          "first",
          "last"
        ])
        expect(made.statuses.some(({ providerMessageId }) => providerMessageId === "s")).toBe(true)
      }),
      { seed: 11, numRuns: 500 }
    )
  })
})

describe("The verifier", () => {
  it("accepts what was signed and refuses any change of a bit of it, of its header or of the secret", () => {
    FastCheck.assert(
      FastCheck.property(
        FastCheck.uint8Array({ minLength: 1, maxLength: 200 }),
        FastCheck.nat(),
        (body, where) => {
          const header = signed(body)
          expect(isSigned(secret, header, body)).toBe(true)
          const changed = body.slice()
          const place = where % body.length
          changed[place] = (changed[place] ?? 0) ^ (1 << (where % 8))
          expect(isSigned(secret, header, changed)).toBe(false)
          const digit = 7 + (where % 64)
          const other = header.charAt(digit) === "0" ? "1" : "0"
          expect(isSigned(secret, header.slice(0, digit) + other + header.slice(digit + 1), body)).toBe(false)
          expect(isSigned(Redacted.make(`${key}x`), header, body)).toBe(false)
        }
      ),
      { seed: 3, numRuns: 2_000 }
    )
  })

  it("refuses any header but one", () => {
    FastCheck.assert(
      FastCheck.property(FastCheck.string({ unit: "binary", maxLength: 90 }), (header) => {
        const body = new Uint8Array([1, 2, 3])
        return !isSigned(secret, header, body) && !isSigned(secret, `sha256=${header}`, body)
      }),
      { seed: 5, numRuns: 5_000 }
    )
    expect(isSigned(secret, undefined, new Uint8Array())).toBe(false)
  })

  it("stands before the parser: of 100,000 unverified bodies no byte is decoded or parsed", async () => {
    const next = random(7_071)
    const layer = WebhookIngress.Default.pipe(
      Layer.provide(
        Layer.mock(InboundEvents, {
          accept: () => Effect.dieMessage("Something unverified was accepted."),
          _tag: "store/channels/InboundEvents"
        })
      ),
      Layer.provide(Layer.mock(DeliveryReceipts, {})),
      Layer.provide(
        Layer.mergeAll(
          channelSettings(),
          Layer.mock(ChannelStore, { _tag: "store/channels/Channels" }),
          layerSecretBox([Redacted.make("a master secret of the fuzzer, long enough")])
        )
      ),
      Layer.provideMerge(
        BuiltIn.layerWithGraph({ appSecret: secret }).pipe(
          Layer.provide([Layer.mock(Graph, {}), Layer.mock(GraphFiles, {})])
        )
      )
    )
    // Made before anybody listens; every turn breaks one of them, or its header, in its own way.
    const bodies = Array.from({ length: 5_000 }, () => {
      const payload = mutated(next, pick(next, fixtures).body)
      return new TextEncoder().encode(JSON.stringify(payload) ?? "")
    }).filter(({ length }) => length > 0)
    const parse = vi.spyOn(JSON, "parse")
    const decode = vi.spyOn(TextDecoder.prototype, "decode")
    const read = vi.spyOn(Json, "parse")
    try {
      const refused = await Effect.runPromise(
        Effect.gen(function* () {
          const intake = yield* WebhookIngress
          const [adapter] = (yield* ChannelAdapters).all
          if (adapter === undefined) return expect.unreachable()
          let count = 0
          for (let turn = 0; turn < 100_000; turn++) {
            const body = pick(next, bodies).slice()
            const right = signed(body)
            const place = Math.floor(next() * body.length)
            const wrong = pick<() => string | undefined>(next, [
              () => undefined,
              () => "",
              () => right.slice(0, Math.floor(next() * right.length)),
              () => right.replace("sha256", "sha1"),
              () => `${right}${right}`,
              () => {
                body[place] = (body[place] ?? 0) ^ (1 + Math.floor(next() * 255))
                return right
              }
            ])()
            const header = (name: string) => (name === "x-hub-signature-256" ? wrong : undefined)
            const request = { header, body, now }
            // Both ways in: through the framework, and beside it.
            const outcome =
              turn % 2 === 0
                ? yield* Effect.exit(intake.deliver(adapter, request))
                : yield* Effect.async<Exit.Exit<unknown, { readonly _tag: string }>>((resume) => {
                    intake.tryDeliver(adapter, request, (exit) => resume(Effect.succeed(exit)))
                  })
            if (Exit.isFailure(outcome) && Option.exists(Cause.failureOption(outcome.cause), isUnauthorized))
              count++
          }
          return count
        }).pipe(Effect.provide(layer))
      )
      expect(refused).toBe(100_000)
      // The test runner reads its own source maps when an error is made.
      const texts = parse.mock.calls.map(([text]) => text).filter((text) => !text.startsWith('{"version":3'))
      expect(texts).toEqual([])
      expect(decode).not.toHaveBeenCalled()
      expect(read).not.toHaveBeenCalled()
    } finally {
      vi.restoreAllMocks()
    }
  }, 60_000)
})
