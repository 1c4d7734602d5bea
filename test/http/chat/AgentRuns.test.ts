import { layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as Ref from "effect/Ref"
import * as Stream from "effect/Stream"
import { expect } from "vitest"
import { TurnFailed } from "../../../src/domain/Errors.ts"
import * as Resume from "../../../src/http/Resume.ts"
import * as Sse from "../../../src/http/Sse.ts"
import { keyHeader, layer as PublicServer, Script, turn } from "../PublicServer.ts"
import { expectData, expectError, TestServer } from "../TestServer.ts"
import { chunksOf, parts, type Read, textDelta, types } from "./UiStream.ts"

const call = (method: string, path: string, key: string) =>
  Effect.flatMap(TestServer, (server) => server.call(method, path, { headers: keyHeader(key) }))

/** The parts that a client counts to resume (docs/traces.md). */
const counted = (chunks: ReadonlyArray<Read>) =>
  chunks.reduce((sum, { delta, type }) => sum + (type === "text-delta" ? `${String(delta)}`.length : 1), 0)

layer(PublicServer, { excludeTestServices: true })("GET /v1/agent-runs/:runId", (it) => {
  it.effect("passes on limit and cursor, 20 and the start by default", () =>
    Effect.gen(function* () {
      const { asked } = yield* Script
      const pages: ReadonlyArray<readonly [string, { limit: number; after: number }]> = [
        ["", { limit: 20, after: 0 }],
        ["?limit=100&cursor=17", { limit: 100, after: 17 }],
        ["?limit=1", { limit: 1, after: 0 }],
        [`?cursor=${Number.MAX_SAFE_INTEGER}`, { limit: 20, after: Number.MAX_SAFE_INTEGER }]
      ]
      for (const [query, page] of pages) {
        const answer = yield* call("GET", `/v1/agent-runs/run_1${query}`, "spk_all")
        expect(expectData(answer)).toMatchObject({ id: "run_1", status: "running", completedAt: null })
        const { args, use } = (yield* Ref.get(asked)).at(-1) ?? { use: "", args: [] }
        expect([use, args[2], args[3]]).toEqual(["trace", page, answer.headers.get("x-request-id")])
      }
    })
  )

  it.effect("refuses a limit or a cursor that is not a positive integer, and a limit above 100", () =>
    Effect.gen(function* () {
      for (const query of [
        "limit=0",
        "limit=101",
        "limit=1.5",
        "limit=x",
        "cursor=0",
        "cursor=-1",
        "cursor=1.5",
        "cursor=x",
        "cursor=1e3",
        `cursor=${Number.MAX_SAFE_INTEGER + 1}`,
        "cursor="
      ]) {
        const answer = yield* call("GET", `/v1/agent-runs/run_1?${query}`, "spk_all")
        expectError(answer, 400, "VALIDATION_ERROR")
      }
    })
  )

  it.effect("is for keys with trace_read, and finds only runs of the key's agent", () =>
    Effect.gen(function* () {
      expectError(yield* call("GET", "/v1/agent-runs/run_1", "spk_chat"), 403, "FORBIDDEN")
      expectError(yield* call("GET", "/v1/agent-runs/run_1", "spk_other"), 404, "NOT_FOUND")
      expectError(yield* call("GET", "/v1/agent-runs/run_2", "spk_all"), 404, "NOT_FOUND")
    })
  )
})

layer(PublicServer, { excludeTestServices: true })("POST /v1/agent-runs/:runId/stop", (it) => {
  it.effect("answers with the status of the run, for keys with chat", () =>
    Effect.gen(function* () {
      const answer = yield* call("POST", "/v1/agent-runs/run_1/stop", "spk_chat")
      expect(expectData(answer)).toEqual({ id: "run_1", status: "complete" })
      expectError(yield* call("POST", "/v1/agent-runs/run_1/stop", "spk_retrieve"), 403, "FORBIDDEN")
      expectError(yield* call("POST", "/v1/agent-runs/run_1/stop", "spk_other"), 404, "NOT_FOUND")
    })
  )
})

layer(PublicServer, { excludeTestServices: true })("GET /v1/chat/stream/:runId", (it) => {
  const streamed = Effect.gen(function* () {
    const { start } = yield* Script
    yield* Ref.set(start, () => Effect.succeed(turn(Stream.fromIterable(parts))))
    const { url } = yield* TestServer
    const whole = yield* Effect.promise(async () => {
      const response = await fetch(`${url}/v1/chat/stream`, {
        method: "POST",
        headers: { ...keyHeader("spk_all"), "content-type": "application/json" },
        body: '{"message":"Hi"}'
      })
      return { headers: response.headers, text: await response.text() }
    })
    return whole
  })

  it.effect("has the headers and the frames of the first stream", () =>
    Effect.gen(function* () {
      const first = yield* streamed
      const again = yield* call("GET", "/v1/chat/stream/run_1", "spk_all")
      expect(again.status).toBe(200)
      for (const name of [
        "content-type",
        "cache-control",
        "x-accel-buffering",
        "x-vercel-ai-ui-message-stream",
        "x-run-id",
        "x-end-user-id"
      ]) {
        expect([name, again.headers.get(name)]).toEqual([name, first.headers.get(name)])
      }
      expect(again.text).toBe(first.text)
      const shown = yield* call("GET", "/v1/chat/stream/run_1", "spk_chat")
      expect(shown.text).not.toContain("operator-only")
    })
  )

  it.effect("continues after the frames that the client has counted", () =>
    Effect.gen(function* () {
      const { text } = yield* streamed
      const whole = yield* Effect.promise(() => chunksOf(text))
      for (let after = 0; after <= whole.length; after++) {
        const read = whole.slice(0, after)
        const rest = yield* call("GET", `/v1/chat/stream/run_1?after=${counted(read)}`, "spk_all")
        const chunks = yield* Effect.promise(() => chunksOf(rest.text))
        expect(chunks).toEqual(whole.slice(after))
      }
      for (const after of ["-1", "x", "1.5"]) {
        const answer = yield* call("GET", `/v1/chat/stream/run_1?after=${after}`, "spk_all")
        expectError(answer, 400, "VALIDATION_ERROR")
      }
    })
  )

  it.effect("is one error part for a turn that failed, and not found for any other agent", () =>
    Effect.gen(function* () {
      const { start } = yield* Script
      const failed = Stream.concat(
        Stream.make(textDelta("Half")),
        Stream.fail(new TurnFailed({ message: "no" }))
      )
      yield* Ref.set(start, () => Effect.succeed(turn(failed)))
      const { text } = yield* call("GET", "/v1/chat/stream/run_1", "spk_all")
      const chunks = yield* Effect.promise(() => chunksOf(text))
      expect(types(chunks).at(-1)).toBe("error")
      expectError(yield* call("GET", "/v1/chat/stream/run_1", "spk_other"), 404, "NOT_FOUND")
      expectError(yield* call("GET", "/v1/chat/stream/run_1", "spk_retrieve"), 403, "FORBIDDEN")
    })
  )

  const told = (deltas: ReadonlyArray<string>) =>
    Stream.concat(Stream.fromIterable(deltas.map(textDelta)), Stream.fromIterable(parts))

  const textOf = (chunks: ReadonlyArray<Read>) => chunks.map(({ delta }) => delta ?? "").join("")

  it.effect.prop(
    "loses and repeats nothing, for any division of the text into frames",
    [FastCheck.array(FastCheck.string({ minLength: 1, unit: "grapheme" })), FastCheck.nat({ max: 60 })],
    ([deltas, frames]) =>
      Effect.gen(function* () {
        const read = (stream: Stream.Stream<Uint8Array>) =>
          Effect.flatMap(Stream.mkString(Stream.decodeText(stream)), (text) =>
            Effect.promise(() => chunksOf(text))
          )
        const one = told(deltas).pipe(Stream.rechunk(1))
        const whole = yield* read(Sse.body(one, true))
        const before = whole.slice(0, frames)
        const rest = yield* read(Resume.skip(Sse.body(told(deltas), true), counted(before)))
        expect(textOf(before) + textOf(rest)).toBe(textOf(whole))
        const others = (chunks: ReadonlyArray<Read>) => types(chunks).filter((type) => type !== "text-delta")
        expect([...others(before), ...others(rest)]).toEqual(others(whole))
      })
  )
})
