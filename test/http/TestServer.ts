/** A whole server in this process, on a free port of the loopback interface. */
import * as HttpApi from "@effect/platform/HttpApi"
import * as HttpServer from "@effect/platform/HttpServer"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { expect } from "vitest"
import * as Server from "../../src/http/server/Server.ts"
import { conformanceProblems } from "./Conformance.ts"

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The parsed body; undefined when it is no JSON. */
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look into it field by field
  readonly json: any
}

export class TestServer extends Context.Tag("test/TestServer")<
  TestServer,
  {
    readonly url: string
    /** Sends a request and reads the whole answer. A `body` other than text, bytes and forms is sent as JSON. */
    readonly call: (method: string, path: string, options?: Options) => Effect.Effect<Answer>
  }
>() {}

export interface Options {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
}

type RawBody = NonNullable<RequestInit["body"]>

const isRaw = (body: unknown): body is RawBody =>
  typeof body === "string" || body instanceof Uint8Array || body instanceof FormData || body instanceof Blob

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const call =
  (url: string) =>
  (method: string, path: string, { headers = {}, body }: Options = {}): Effect.Effect<Answer> =>
    Effect.promise(async (signal) => {
      const raw = isRaw(body)
      const response = await fetch(`${url}${path}`, {
        method,
        signal,
        headers: {
          ...(typeof body === "object" && !raw ? { "content-type": "application/json" } : {}),
          ...headers
        },
        ...(body === undefined ? {} : { body: isRaw(body) ? body : JSON.stringify(body) })
      })
      const text = await response.text()
      const answer = { status: response.status, headers: response.headers, text, json: parsed(text) }
      // Every suite also checks that the answer conforms to the API description.
      expect(conformanceProblems(method, path, answer)).toEqual([])
      return answer
    })

/** Serves `api`: `HttpApiBuilder.api(…)` with its handlers and their dependencies. */
export const layer = <E, R>(api: Layer.Layer<HttpApi.Api, E, R>) =>
  Layer.effect(
    TestServer,
    Effect.map(HttpServer.HttpServer, ({ address }) => {
      if (address._tag !== "TcpAddress") throw new Error("The server listens on no port.")
      const url = `http://127.0.0.1:${address.port}`
      return { url, call: call(url) }
    })
  ).pipe(
    Layer.provide(Server.serve(api)),
    Layer.provide(Server.listen({ host: "127.0.0.1", port: 0, grace: "1 second" }))
  )

/** Checks that `answer` is the documented error, in its envelope, with its id in body and header. */
export const expectError = (answer: Answer, status: number, code: string) => {
  expect([answer.status, answer.json?.error?.code]).toEqual([status, code])
  expect(typeof answer.json.error.message).toBe("string")
  expect(answer.json.meta).toEqual({ requestId: answer.headers.get("x-request-id") })
  expect(Object.keys(answer.json).sort()).toEqual(["error", "meta"])
}

/** Checks that `answer` is a success in its envelope, and returns its data. */
export const expectData = (answer: Answer, status = 200) => {
  expect([answer.status, answer.json?.error]).toEqual([status, undefined])
  expect(answer.json.meta).toEqual({ requestId: answer.headers.get("x-request-id") })
  expect(Object.keys(answer.json).sort()).toEqual(["data", "meta"])
  return answer.json.data
}
