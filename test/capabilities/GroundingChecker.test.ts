/** Verdicts of the checkers: by words, by a model, by a service. */
import { createServer } from "node:http"
import { expect, it } from "@effect/vitest"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import { type Claim, GroundingChecker } from "../../src/capabilities/GroundingChecker.ts"
import { layerHttp } from "../../src/capabilities/GroundingChecker/Http.ts"
import { layerModel } from "../../src/capabilities/GroundingChecker/Model.ts"
import { layerWords } from "../../src/capabilities/GroundingChecker/Words.ts"
import { type ModelRequest, ModelError, ModelRuntime } from "../../src/capabilities/ModelRuntime.ts"
import { parseAllowList } from "../../src/capabilities/OutboundHttp/AddressRules.ts"
import { layerUndici } from "../../src/capabilities/OutboundHttp/Undici.ts"

const passage = {
  index: 1,
  title: "Prices",
  text: "Prices of 2026. The Team plan costs 1,200 euros a year for up to 10 seats. It cannot be shared with Northwind. The API answers `429 Too Many Requests` above that."
}
const german = {
  index: 2,
  title: "Preise",
  text: "Der Tarif Team kostet 1.200 Euro im Jahr für bis zu 10 Plätze. Er darf nicht geteilt werden."
}

const claim = (text: string, ...passages: ReadonlyArray<typeof passage>): Claim => ({
  text,
  passages: passages.length === 0 ? [passage] : passages
})

const check = (...claims: ReadonlyArray<Claim>) =>
  Effect.flatMap(GroundingChecker, (checker) => checker.check(claims))

const supported = (...claims: ReadonlyArray<Claim>) =>
  Effect.map(check(...claims), ({ verdicts }) => verdicts.map((verdict) => verdict.supported))

it.effect("Words support what the passages say, and not other numbers, names, denials and quotations", () =>
  Effect.gen(function* () {
    expect(
      yield* supported(
        claim("The Team plan costs 1200 euros a year."),
        claim("Up to ten seats are in the Team plan, for 1,200 euros a year."),
        claim("The Team plan costs 1500 euros a year."),
        claim("The Enterprise plan costs 1200 euros a year."),
        claim("The Team plan can be shared with Northwind."),
        claim("The Team plan cannot be shared with Northwind."),
        claim("be shared with Northwind."),
        claim("Above that the API answers `429 Too Many Requests`."),
        claim("Above that the API answers `503 Slow Down`."),
        claim("Penguins breed on the ice in winter.")
      )
    ).toEqual(["yes", "yes", "no", "no", "no", "yes", "no", "yes", "no", "no"])
    expect(yield* supported(claim("Der Tarif Team kostet 1200 Euro im Jahr.", german))).toEqual(["yes"])
    expect(yield* supported(claim("Der Tarif Team kostet 1500 Euro im Jahr.", german))).toEqual(["no"])
    expect(yield* supported(claim("Der Tarif Team darf geteilt werden.", german))).toEqual(["no"])
  }).pipe(Effect.provide(layerWords))
)

it.effect("Words take no word for a number that is mostly another word", () =>
  Effect.gen(function* () {
    const prazo = { index: 4, title: "Prazos", text: "O prazo para os pedidos de clientes é de 30 dias." }
    expect(
      yield* supported(
        claim("Once it costs 1,200 euros a year, the Team plan is for up to 10 seats."),
        claim("O prazo dos pedidos de clientes é de 30 dias.", prazo)
      )
    ).toEqual(["yes", "yes"])
  }).pipe(Effect.provide(layerWords))
)

it.effect("Words take several passages together, and name what each of them says word for word", () =>
  Effect.gen(function* () {
    const other = { index: 3, title: "Delivery", text: "Parcels leave from Porto. They take 4 days." }
    const { verdicts } = yield* check(
      claim("The Team plan costs 1200 euros, and parcels from Porto take 4 days.", passage, other)
    )
    expect(verdicts[0]?.supported).toBe("yes")
    for (const { index, text } of verdicts[0]?.spans ?? [])
      expect((index === 1 ? passage : other).text).toContain(text)
    expect(verdicts[0]?.spans.map(({ text }) => text)).toEqual([
      "The Team plan costs 1,200 euros a year for up to 10 seats.",
      "Parcels leave from Porto. They take 4 days."
    ])
  }).pipe(Effect.provide(layerWords))
)

it.live("Words let requests be served while they check many statements by long passages", () =>
  Effect.gen(function* () {
    let turns = 0
    let next = setImmediate(function turn() {
      turns++
      next = setImmediate(turn)
    })
    const text = "The Team plan costs 1,200 euros a year, and it is for up to 10 seats. ".repeat(900)
    const passages = [1, 2, 3].map((index) => ({ index, title: "Prices", text }))
    const verdicts = yield* supported(
      ...Array.from({ length: 30 }, () => claim("The Team plan costs 1,200 euros.", ...passages))
    )
    clearImmediate(next)
    expect(new Set(verdicts)).toEqual(new Set(["yes"]))
    expect(turns).toBeGreaterThanOrEqual(5)
  }).pipe(Effect.provide(layerWords))
)

it.effect("Words take a part of a text without full stops for what says it", () =>
  Effect.gen(function* () {
    for (const blank of [" ", ""]) {
      const filler = `和其他的东西在这里${blank}`.repeat(900)
      const text = `${filler}商店在九点开门${blank}${filler}`
      const { verdicts } = yield* check({
        text: "商店在九点开门",
        passages: [{ index: 1, title: "商店", text }]
      })
      const [verdict] = verdicts
      expect(verdict?.supported).toBe("yes")
      expect(verdict?.spans[0]?.text).toContain("商店在九点开门")
      expect(verdict?.spans[0]?.text.length).toBeLessThan(text.length)
    }
  }).pipe(Effect.provide(layerWords))
)

it.effect("Words say nothing of a statement in another language than its passages, or of no words", () =>
  Effect.gen(function* () {
    expect(
      yield* supported(
        claim("Der Tarif Team kostet nicht mehr als das, was er im letzten Jahr gekostet hat."),
        claim("团队套餐每年1500欧元。"),
        claim("!")
      )
    ).toEqual([null, null, null])
  }).pipe(Effect.provide(layerWords))
)

const model = (
  answer: string | ModelError,
  seen: Array<ModelRequest> = [],
  timeout: Duration.DurationInput = "200 millis"
) =>
  Layer.provide(
    layerModel({ timeout }),
    Layer.succeed(ModelRuntime, {
      defaultModel: "scripted",
      contextWindow: 8_000,
      readsPassages: false,
      acceptsImages: false,
      readable: () => [],
      reply: (request) => {
        seen.push(request)
        if (typeof answer !== "string") return Stream.fail(answer)
        return answer === "never"
          ? Stream.never
          : Stream.make(
              { _tag: "TextDelta", delta: answer } as const,
              { _tag: "Finish", reason: "stop", inputTokens: 7, outputTokens: 3 } as const
            )
      }
    })
  )

it.live("A model is asked once for all statements; what it does not tell, words do", () =>
  Effect.gen(function* () {
    const seen: Array<ModelRequest> = []
    const answer = 'Here: ```json\n[{"statement": 1, "supported": "partly", "quote": "up to 10 seats"}]\n```'
    const asked = [
      claim("The Team plan costs 1200 euros a year."),
      claim("The Team plan costs 1500 euros a year.")
    ]
    const checked = yield* check(...asked).pipe(Effect.provide(model(answer, seen)))
    expect(checked.verdicts.map((verdict) => verdict.supported)).toEqual(["partly", "no"])
    expect(checked.verdicts[0]?.spans).toEqual([{ index: 1, text: "up to 10 seats" }])
    expect([checked.inputTokens, checked.outputTokens]).toEqual([7, 3])
    expect(seen).toHaveLength(1)
    const failed = new ModelError({ reason: "Rejected", message: "no", retryable: false })
    for (const broken of ["I cannot say.", "[1, 2]", "never", failed]) {
      const { bills, verdicts } = yield* check(...asked).pipe(Effect.provide(model(broken)))
      expect(verdicts.map((verdict) => verdict.supported)).toEqual(["yes", "no"])
      // A call that the provider refused costs nothing.
      expect(bills).toHaveLength(broken === failed ? 0 : 1)
    }
  })
)

it.live("A check ends when its turn is cancelled, and words decide; after that nobody is asked", () =>
  Effect.gen(function* () {
    const seen: Array<ModelRequest> = []
    const asked = [
      claim("The Team plan costs 1200 euros a year."),
      claim("The Team plan costs 1500 euros a year.")
    ]
    const checkUntil = (cancelled: Effect.Effect<void>) =>
      Effect.flatMap(GroundingChecker, (checker) => checker.check(asked, cancelled)).pipe(
        Effect.map(({ verdicts }) => verdicts.map((verdict) => verdict.supported)),
        Effect.timeout("5 seconds")
      )
    const silentModel = model("never", seen, "1 minute")
    expect(yield* checkUntil(Effect.sleep("50 millis")).pipe(Effect.provide(silentModel))).toEqual([
      "yes",
      "no"
    ])
    expect(seen).toHaveLength(1)
    expect(yield* checkUntil(Effect.void).pipe(Effect.provide(silentModel))).toEqual(["yes", "no"])
    expect(seen).toHaveLength(1)
    const requested: Array<Seen> = []
    const { url } = yield* service(200, null, requested)
    const silentService = Layer.provide(
      layerHttp({ url, timeout: "1 minute" }),
      layerUndici({ allow: Either.getOrThrow(parseAllowList("127.0.0.1")) })
    )
    expect(yield* checkUntil(Effect.sleep("50 millis")).pipe(Effect.provide(silentService))).toEqual([
      "yes",
      "no"
    ])
    yield* Effect.sleep("50 millis")
    const before = requested.length
    expect(yield* checkUntil(Effect.void).pipe(Effect.provide(silentService))).toEqual(["yes", "no"])
    yield* Effect.sleep("50 millis")
    expect(requested).toHaveLength(before)
  }).pipe(Effect.scoped)
)

interface Seen {
  readonly authorization: string | undefined
  readonly body: unknown
}

/** A service that answers every request alike; null: never. */
const service = (status: number, body: unknown, seen: Array<Seen> = []) =>
  Effect.acquireRelease(
    Effect.async<{ readonly url: string; readonly close: () => void }>((resume) => {
      const server = createServer((request, response) => {
        let text = ""
        request.on("data", (part) => (text += String(part)))
        request.on("end", () => {
          seen.push({ authorization: request.headers.authorization, body: JSON.parse(text) })
          if (body === null) return
          response.writeHead(status, { "content-type": "application/json" })
          response.end(typeof body === "string" ? body : JSON.stringify(body))
        })
      })
      const close = () => {
        server.closeAllConnections()
        server.close()
      }
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        const port = typeof address === "object" && address !== null ? address.port : 0
        resume(Effect.succeed({ url: `http://127.0.0.1:${port}/v1/check-grounding`, close }))
      })
    }),
    ({ close }) => Effect.sync(close)
  )

const over = (url: string) =>
  Layer.provide(
    layerHttp({ url, apiKey: Redacted.make("key-of-the-service"), timeout: "300 millis" }),
    layerUndici({ allow: Either.getOrThrow(parseAllowList("127.0.0.1")) })
  )

it.scopedLive(
  "A service is asked for each statement in the usual form; what it does not tell, words do",
  () =>
    Effect.gen(function* () {
      const seen: Array<Seen> = []
      const { url } = yield* service(
        200,
        { supportScore: 0.5, citedChunks: [{ chunkText: "up to 10 seats", source: "0" }], claims: [] },
        seen
      )
      const asked = [
        claim("The Team plan costs 1200 euros a year."),
        claim("The Team plan costs 1500 euros a year.")
      ]
      const checked = yield* check(...asked).pipe(Effect.provide(over(url)))
      expect(checked.verdicts.map((verdict) => verdict.supported)).toEqual(["partly", "partly"])
      expect(checked.verdicts[0]?.spans).toEqual([{ index: 1, text: "up to 10 seats" }])
      expect(seen).toHaveLength(2)
      expect(seen[0]).toMatchObject({
        authorization: "Bearer key-of-the-service",
        body: {
          answerCandidate: "The Team plan costs 1200 euros a year.",
          facts: [{ factText: passage.text, attributes: { title: "Prices" } }]
        }
      })
      for (const [status, body] of [
        [500, {}],
        [302, {}],
        [200, "no JSON"],
        [200, { supportScore: 7 }],
        [200, null]
      ] as const) {
        const broken = yield* service(status, body)
        expect(yield* supported(...asked).pipe(Effect.provide(over(broken.url)))).toEqual(["yes", "no"])
      }
    })
)
