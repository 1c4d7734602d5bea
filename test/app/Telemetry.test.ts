/** Telemetry that a collector gets over HTTP: of requests, without secrets, and while the collector does not answer. */
import * as Http from "node:http"
import type { AddressInfo } from "node:net"
import { expect, it } from "@effect/vitest"
import * as HttpClient from "@effect/platform/HttpClient"
import * as Headers from "@effect/platform/Headers"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import { exchange } from "../../src/app/Providers.ts"
import { ModelError, type ModelPart } from "../../src/capabilities/ModelRuntime.ts"
import { measured } from "../../src/capabilities/ModelRuntime/Measured.ts"
import { StreamingPost } from "../../src/capabilities/StreamingPost.ts"
import * as ProviderHttp from "../../src/capabilities/ModelRuntime/ProviderHttp.ts"
import { withRequestSpan } from "../../src/http/server/Span.ts"
import { layer } from "../../src/app/telemetry/Telemetry.ts"
import { afterAll, beforeAll } from "vitest"
import { requestOf } from "../capabilities/ModelRuntime/Harness.ts"

const received: Array<{
  readonly path: string
  readonly headers: Http.IncomingHttpHeaders
  readonly body: string
}> = []
const collector = Http.createServer((request, response) => {
  let body = ""
  request.on("data", (chunk: Buffer) => (body += chunk.toString()))
  request.on("end", () => {
    received.push({ path: request.url ?? "", headers: request.headers, body })
    response.setHeader("content-type", "application/json")
    response.end("{}")
  })
})
let url = ""

beforeAll(async () => {
  await new Promise<void>((resolve) => collector.listen(0, "127.0.0.1", resolve))
  url = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`
})
afterAll(() => void collector.close())

const canary = "canary-9c1f"
const traceId = "4bf92f3577b34da6a3ce929d0e0e4736"

const request = (headers: Record<string, string> = {}) => ({
  method: "GET",
  headers: () => Headers.fromInput({ authorization: `Bearer ${canary}`, "x-odd": canary, ...headers })
})

const telemetry = (ratio: number, endpoint = url) =>
  layer({ endpoint, headers: Redacted.make({ "x-team": "museum" }), service: "tests", ratio })

const handled = (headers?: Record<string, string>) =>
  Effect.gen(function* () {
    yield* Effect.logInfo("Handled").pipe(Effect.annotateLogs({ requestId: "req_1" }))
    return HttpServerResponse.empty({ status: 204 })
  }).pipe(
    withRequestSpan(request(headers), "req_1", Effect.succeed("/v1/sources/:id"), ({ status }) => status)
  )

const spans = () =>
  received
    .filter(({ path }) => path === "/v1/traces")
    .flatMap(({ body }) => JSON.parse(body).resourceSpans[0].scopeSpans[0].spans)

it.live(
  "a request is a span named by its route, the caller's trace goes on, and nothing of its address or headers is told",
  () =>
    Effect.gen(function* () {
      received.length = 0
      const traced = { traceparent: `00-${traceId}-00f067aa0ba902b7-01` }
      yield* handled(traced).pipe(Effect.provide(telemetry(0)))
      const [span, ...others] = spans()
      expect(others).toEqual([])
      expect(span).toMatchObject({ name: "GET /v1/sources/:id", traceId, parentSpanId: "00f067aa0ba902b7" })
      expect(JSON.stringify(span.attributes)).toContain("req_1")
      const logs = received.filter(({ path }) => path === "/v1/logs").map(({ body }) => body)
      expect(logs.join()).toContain(traceId)
      expect(logs.join()).toContain("req_1")
      expect(received.some(({ path }) => path === "/v1/metrics")).toBe(true)
      expect(received.every(({ headers }) => headers["x-team"] === "museum")).toBe(true)
      expect(JSON.stringify(received.map(({ body }) => body))).not.toContain(canary)
    })
)

it.live("as much is traced as the setting says, and nothing without a collector", () =>
  Effect.gen(function* () {
    received.length = 0
    yield* Effect.repeatN(handled(), 9).pipe(Effect.provide(telemetry(0)))
    yield* handled({ traceparent: `00-${traceId}-00f067aa0ba902b7-00` }).pipe(Effect.provide(telemetry(1)))
    expect(spans()).toEqual([])
    yield* Effect.repeatN(handled(), 9).pipe(Effect.provide(telemetry(1)))
    expect(spans()).toHaveLength(10)
    const seen = yield* Effect.option(Effect.currentSpan).pipe(
      Effect.withSpan("outer"),
      Effect.provide(layer(null))
    )
    expect(seen._tag === "Some" && seen.value.sampled).toBe(false)
  })
)

it.live(
  "calls to the model provider carry the trace; others do not, and neither makes a span of its address",
  () =>
    Effect.gen(function* () {
      received.length = 0
      const call = (path: string) =>
        Effect.flatMap(HttpClient.HttpClient, (client) => client.get(`${url}${path}?key=${canary}`)).pipe(
          Effect.scoped
        )
      const post = Effect.flatMap(StreamingPost, (exchange) =>
        exchange.post({
          url: `${url}/provider?key=${canary}`,
          headers: {},
          body: "{}",
          first: Duration.seconds(5),
          next: Duration.seconds(5)
        })
      ).pipe(
        Effect.flatMap(({ read }) => read),
        Effect.scoped
      )
      yield* Effect.zipRight(
        post.pipe(Effect.provide(exchange)),
        call("/other").pipe(Effect.provide(ProviderHttp.layer))
      ).pipe(Effect.withSpan("turn"), Effect.provide(telemetry(1)))
      const of = (path: string) => received.find((each) => each.path.startsWith(path))?.headers["traceparent"]
      expect(of("/provider")).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/u)
      expect(of("/other")).toBeUndefined()
      expect(JSON.stringify(spans())).not.toContain(canary)
    })
)

it.live("a collector that is gone costs a request nothing", () =>
  Effect.gen(function* () {
    const response = yield* handled().pipe(Effect.provide(telemetry(1, "http://127.0.0.1:9")))
    expect(response.status).toBe(204)
  })
)

it.live("a failure is told by its kind and its place, and not by its words, whatever they quote", () =>
  Effect.gen(function* () {
    received.length = 0
    class ShopFailed extends Error {
      readonly _tag = "ShopFailed"
    }
    const quoting = new ShopFailed(`It said\n at once: ${canary}`, { cause: canary })
    const failing = Effect.fn("shop.ask")(() => Effect.fail(quoting))
    const dying = Effect.fn("shop.break")(() => Effect.die(new TypeError(canary)))
    yield* Effect.gen(function* () {
      yield* Effect.flip(failing())
      yield* Effect.exit(dying())
    }).pipe(
      Effect.withSpan("outer"),
      Effect.annotateLogs({ requestId: "req_1" }),
      Effect.provide(telemetry(1))
    )
    const found = spans().map(({ events, name }: { events: unknown; name: string }) => [
      name,
      JSON.stringify(events)
    ])
    const told = Object.fromEntries(found)
    expect(told["shop.ask"]).toContain("ShopFailed")
    expect(told["shop.break"]).toContain("TypeError")
    expect(told["shop.ask"]).toMatch(/Telemetry\.test\.ts/u)
    expect(JSON.stringify(received.map(({ body }) => body))).not.toContain(canary)
  })
)

const attributesOf = (span: { readonly attributes: ReadonlyArray<{ key: string; value: object }> }) =>
  Object.fromEntries(span.attributes.map(({ key, value }) => [key, Object.values(value)[0]]))

it.live("a statement is named by its operation and its table, and none of its values is told", () =>
  Effect.gen(function* () {
    received.length = 0
    const statement = (text: string) =>
      Effect.useSpan("sql.execute", { kind: "client" }, (span) =>
        Effect.sync(() => {
          span.attribute("db.system.name", "postgresql")
          span.attribute("db.operation.name", "execute")
          span.attribute("db.query.text", text)
        })
      )
    const statements = [
      `select id from sources where name = '${canary}' and size > 4711 and agent_id = $1`,
      "insert into messages (id) values ($1)",
      "update queue_jobs j set state = 'active' where j.id = $1",
      "delete from chunk_vectors_1 where id = $1",
      `with recursive found as (select id from chunks limit 12), other as materialized (select 1)
        insert into hits (id) select id from found`,
      "with gone as (delete from sessions returning id) select count(*) from gone",
      "select count(*) from unnest($1::text[]) as id join agents using (id)",
      "select 1"
    ]
    yield* Effect.forEach(statements, statement).pipe(Effect.provide(telemetry(1)))
    expect(spans().map(({ name }: { readonly name: string }) => name)).toEqual([
      "SELECT sources",
      "INSERT messages",
      "UPDATE queue_jobs",
      "DELETE chunk_vectors_1",
      "INSERT hits",
      "SELECT sessions",
      "SELECT agents",
      "SELECT"
    ])
    expect(attributesOf(spans()[0])).toEqual({
      "db.system.name": "postgresql",
      "db.operation.name": "SELECT",
      "db.collection.name": "sources",
      "db.query.text": "select id from sources where name = ? and size > ? and agent_id = $1"
    })
    expect(JSON.stringify(spans().map(attributesOf))).not.toMatch(/canary|4711/u)
  })
)

it.live(
  "a call to a model says which model and how many tokens, as OpenTelemetry names them, and no word of it",
  () =>
    Effect.gen(function* () {
      received.length = 0
      const parts: ReadonlyArray<ModelPart> = [
        { _tag: "TextDelta", delta: canary },
        { _tag: "Finish", reason: "stop", inputTokens: 7, outputTokens: 3 }
      ]
      const failure = new ModelError({ reason: "RateLimited", message: canary, retryable: true })
      const runtime = (reply: Stream.Stream<ModelPart, ModelError>) =>
        measured("openai", {
          defaultModel: "small",
          contextWindow: 1_000,
          readsPassages: false,
          acceptsImages: false,
          readable: () => [],
          reply: () => reply
        }).reply(requestOf({ model: null, question: canary }))
      yield* Effect.zipRight(
        Stream.runDrain(runtime(Stream.fromIterable(parts))),
        Effect.flip(Stream.runDrain(runtime(Stream.fail(failure))))
      ).pipe(Effect.provide(telemetry(1)))
      const [answered, refused] = spans()
      expect([answered.name, answered.kind]).toEqual(["chat small", 3])
      expect(attributesOf(answered)).toMatchObject({
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "small",
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.usage.output_tokens": 3,
        "gen_ai.response.time_to_first_chunk": expect.any(Number),
        "gen_ai.response.finish_reasons": { values: [{ stringValue: "stop" }] }
      })
      expect(attributesOf(refused)).toMatchObject({ "error.type": "RateLimited" })
      const bodies = received.map(({ body }) => body).join("")
      expect(bodies).not.toContain(canary)
      expect(bodies).toMatch(/"service\.instance\.id","value":\{"stringValue":"[0-9a-f-]{36}"/u)
    })
)
