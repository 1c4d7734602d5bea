import { expect, layer } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { Embedder } from "../../../src/capabilities/Embedder.ts"
import { layerOpenAi, type OpenAiOptions } from "../../../src/capabilities/Embedder/OpenAi.ts"
import { exchange } from "../../../src/app/Providers.ts"
import type { StreamingPost } from "../../../src/capabilities/StreamingPost.ts"
import * as ModelStub from "../../servers/ModelStub.ts"

class Stub extends Context.Tag("test/Stub")<Stub, ModelStub.ModelStub>() {}

const key = "sk-canary-0123456789"
const environment = Layer.merge(Layer.scoped(Stub, ModelStub.make), exchange)

const withModel = <A, E>(
  options: Partial<OpenAiOptions>,
  body: Effect.Effect<A, E, Embedder | Stub>
): Effect.Effect<A, E, Stub | StreamingPost> =>
  Effect.flatMap(Stub, ({ url, reset }) => {
    reset()
    return Effect.provide(
      body,
      layerOpenAi({ apiKey: Redacted.make(key), baseUrl: url, model: "text-embedding-3-small", ...options })
    )
  })

const embed = (...texts: ReadonlyArray<string>) => Effect.flatMap(Embedder, ({ embedAll }) => embedAll(texts))

layer(environment, { excludeTestServices: true })("OpenAi embedder", (it) => {
  it.effect("asks for all texts in one request, with the key", () =>
    withModel(
      {},
      Effect.gen(function* () {
        const { requests } = yield* Stub
        yield* embed("one", "two", "")
        expect(requests).toHaveLength(1)
        expect(requests[0]?.path).toBe("/embeddings")
        expect(requests[0]?.headers.authorization).toBe(`Bearer ${key}`)
        expect(requests[0]?.body).toMatchObject({
          model: "text-embedding-3-small",
          input: ["one", "two", " "]
        })
        expect(requests[0]?.body.dimensions ?? null).toBe(null)
      })
    )
  )

  it.effect("queries that come at the same time go in one request, and a query alone at once", () =>
    withModel(
      {},
      Effect.gen(function* () {
        const { requests } = yield* Stub
        const { embedQuery } = yield* Embedder
        const alone = yield* embedQuery("two")
        const all = yield* Effect.all(["one", "two", "three"].map(embedQuery), { concurrency: "unbounded" })
        const [first, ...together] = requests.map(({ body }): ReadonlyArray<string> => body.input)
        expect(first).toEqual(["two"])
        // They go at the same time, so either may arrive first.
        expect(together.toSorted((one, other) => one.length - other.length)).toEqual([
          ["one"],
          ["two", "three"]
        ])
        expect(all[1]).toEqual(alone)
        expect(all[0]).not.toEqual(alone)
      })
    )
  )

  it.effect("a query that the provider refuses takes no other with it", () =>
    withModel(
      {},
      Effect.gen(function* () {
        const stub = yield* Stub
        const { embedQuery } = yield* Embedder
        yield* embedQuery("before")
        stub.script.push({}, { status: 413 }, { status: 413 })
        const exits = yield* Effect.all(
          ["one", "two", "three"].map((text) => Effect.exit(embedQuery(text))),
          { concurrency: "unbounded" }
        )
        expect(exits.filter(({ _tag }) => _tag === "Success")).toHaveLength(2)
        expect(stub.requests).toHaveLength(5)
      })
    )
  )

  it.effect("names the dimensions when they are not the model's own", () =>
    withModel(
      { dimensions: 256 },
      Effect.gen(function* () {
        const { requests } = yield* Stub
        const [vector] = yield* embed("one")
        expect(vector?.length).toBe(256)
        expect(requests[0]?.body.dimensions).toBe(256)
        expect((yield* Embedder).profile).toBe("text-embedding-3-small/256")
      })
    )
  )

  it.effect("leaves the dimensions out for good when another model's server refuses them", () =>
    withModel(
      { model: "bge-small", dimensions: 384 },
      Effect.gen(function* () {
        const stub = yield* Stub
        stub.dimensions = 384
        stub.script.push({ status: 400 })
        yield* embed("one")
        yield* embed("two")
        expect(stub.requests.map(({ body }) => body.dimensions ?? null)).toEqual([384, null, null])
      })
    )
  )

  it.effect("takes vectors as plain numbers for good from a server that refuses their short form", () =>
    Effect.gen(function* () {
      const [short = new Float32Array()] = yield* withModel({}, embed("one"))
      const { requests, script } = yield* Stub
      const plainly = Effect.gen(function* () {
        requests.length = 0
        script.push({ status: 422 })
        const vectors = yield* embed("one")
        yield* embed("two")
        return vectors
      })
      const [plain = new Float32Array()] = yield* withModel({}, plainly)
      expect(requests.map(({ body }) => body.encoding_format)).toEqual(["base64", "float", "float"])
      expect(short).toHaveLength(1_536)
      for (const [place, number] of plain.entries()) expect(number).toBeCloseTo(short[place] ?? Number.NaN, 6)
    })
  )

  it.effect("does not give the short form up for a text that is refused in either", () =>
    withModel(
      {},
      Effect.gen(function* () {
        const { requests, script } = yield* Stub
        script.push({ status: 400 }, { status: 400 })
        expect(yield* Effect.flip(embed("one"))).toMatchObject({ retryable: false })
        yield* embed("two")
        script.push({ status: 400 })
        expect(yield* Effect.flip(embed("three"))).toMatchObject({ retryable: false })
        expect(requests.map(({ body }) => body.encoding_format)).toEqual([
          "base64",
          "float",
          "base64",
          "base64"
        ])
      })
    )
  )

  it.effect("goes on naming the dimensions that a request had, after a text that is refused", () =>
    withModel(
      { model: "bge-small", dimensions: 384 },
      Effect.gen(function* () {
        const stub = yield* Stub
        stub.dimensions = 384
        yield* embed("one")
        stub.script.push({ status: 400 })
        expect(yield* Effect.flip(embed("two"))).toMatchObject({ retryable: false })
        yield* embed("three")
        expect(stub.requests.at(-1)?.body).toMatchObject({ dimensions: 384, encoding_format: "base64" })
      })
    )
  )

  it.effect("says which dimensions a model gives when they are not those that were set", () =>
    withModel(
      { model: "bge-small", dimensions: 384 },
      Effect.gen(function* () {
        const stub = yield* Stub
        stub.dimensions = 1_024
        stub.script.push({ status: 400 })
        const error = yield* Effect.flip(embed("one"))
        expect(error).toMatchObject({ retryable: false })
        expect(error.message).toContain("1024 dimensions, not 384")
      })
    )
  )

  it.effect("repeats a batch that failed for a passing reason, after the pause that was asked for", () =>
    withModel(
      {},
      Effect.gen(function* () {
        const { requests, script } = yield* Stub
        script.push(
          { status: 429, headers: { "retry-after-ms": "30" } },
          { status: 500 },
          { silent: "reset" }
        )
        expect(yield* embed("one")).toHaveLength(1)
        expect(requests).toHaveLength(4)
      })
    )
  )

  it.effect("hands a long pause on, and sends nothing meanwhile", () =>
    withModel(
      {},
      Effect.gen(function* () {
        const { requests, script } = yield* Stub
        const { embedQuery } = yield* Embedder
        script.push({ status: 429, headers: { "retry-after": "600" } })
        const errors = [
          yield* Effect.flip(embed("one")),
          yield* Effect.flip(embed("two")),
          yield* Effect.flip(embedQuery("three"))
        ]
        for (const { retryable, retryAfter = Duration.zero } of errors) {
          expect(retryable).toBe(true)
          expect(Duration.toSeconds(retryAfter)).toBeGreaterThan(590)
        }
        expect(requests).toHaveLength(1)
      })
    )
  )

  it.effect("a query is tried once: the search has words to fall back on", () =>
    withModel(
      {},
      Effect.gen(function* () {
        const { requests, script } = yield* Stub
        script.push({ status: 500 })
        const error = yield* Effect.flip(Effect.flatMap(Embedder, ({ embedQuery }) => embedQuery("one")))
        expect(error.retryable).toBe(true)
        expect(requests).toHaveLength(1)
      })
    )
  )

  it.effect("does not read on in an answer that is too long for its texts", () =>
    withModel(
      {},
      Effect.gen(function* () {
        const { requests, script } = yield* Stub
        const piece = " ".repeat(1_024 * 1_024)
        script.push({ raw: Array.from({ length: 64 }, () => piece), contentType: "application/json" })
        expect(yield* Effect.flip(embed("one"))).toMatchObject({ retryable: false })
        expect(requests).toHaveLength(1)
      })
    )
  )

  it.effect("no failure repeats the key, or what the provider or the request said", () =>
    withModel(
      {},
      Effect.gen(function* () {
        const { script } = yield* Stub
        script.push(
          { status: 401, body: { error: { message: `Incorrect API key ${key}`, code: "canary" } } },
          { raw: ["{canary"], contentType: "application/json" },
          { raw: ['{"canary": 1}'], contentType: "application/json" },
          { raw: ["{canary"], contentType: "application/json" },
          { silent: "reset" }
        )
        const { embedQuery } = yield* Embedder
        for (let count = 0; count < 5; count++) {
          const error = yield* Effect.flip(embedQuery("text-canary"))
          const shown = [
            JSON.stringify(error),
            String(error),
            error.stack ?? "",
            String(error.cause ?? "")
          ].join()
          expect(shown).not.toMatch(/canary|Incorrect/)
        }
      })
    )
  )

  it.effect("a refused key is not tried again", () =>
    withModel(
      {},
      Effect.gen(function* () {
        const { requests, script } = yield* Stub
        script.push({ status: 401 })
        expect(yield* Effect.flip(embed("one"))).toMatchObject({ retryable: false })
        expect(requests).toHaveLength(1)
      })
    )
  )

  it.effect("a provider that hangs is given up, and interruption aborts the request", () =>
    withModel(
      { timeout: "100 millis" },
      Effect.gen(function* () {
        const { request, script } = yield* Stub
        const { embedQuery } = yield* Embedder
        script.push({ silent: "hang" }, { silent: "hang" })
        expect(yield* Effect.flip(embedQuery("one"))).toMatchObject({ retryable: true })
        const fiber = yield* Effect.fork(embedQuery("two"))
        const { over } = yield* Effect.promise(() => request(1))
        yield* Fiber.interrupt(fiber)
        expect(yield* Effect.promise(() => over)).toBe(true)
      })
    )
  )
})
