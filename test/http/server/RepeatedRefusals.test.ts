import { it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { unsafeCoerce } from "effect/Function"
import * as HttpServer from "@effect/platform/HttpServer"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import * as Scope from "effect/Scope"
import { describe, expect } from "vitest"
import { ServiceUnavailable } from "../../../src/domain/Errors.ts"
import * as Server from "../../../src/http/server/Server.ts"
import { api, keyHeader, Script, script } from "../PublicServer.ts"

/** A server whose turns are all refused, with or without a time to come back. */
const refusing = (retryAfterSeconds: number | undefined, { told = false } = {}) =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    const built = yield* Layer.buildWithScope(
      Server.serve(api).pipe(
        Layer.provideMerge(Server.listen({ host: "127.0.0.1", port: 0, grace: "1 second" })),
        Layer.provideMerge(script),
        Layer.provide(Layer.setTracerEnabled(told))
      ),
      scope
    )
    yield* Effect.addFinalizer(() => Scope.close(scope, Exit.void))
    const { address } = Context.get(built, HttpServer.HttpServer)
    const port = address._tag === "TcpAddress" ? address.port : 0
    let handled = 0
    yield* Ref.set(Context.get(built, Script).start, () =>
      Effect.suspend(() => {
        handled++
        const refused = new ServiceUnavailable({
          message: "There is no place.",
          ...(retryAfterSeconds === undefined ? {} : { details: { retryAfterSeconds } })
        })
        // Endpoints that declare it have no script.
        return unsafeCoerce<Effect.Effect<never, ServiceUnavailable>, Effect.Effect<never>>(
          Effect.fail(refused)
        )
      })
    )
    const post = (headers: Readonly<Record<string, string>>, path = "/v1/chat/stream") =>
      Effect.promise(async () => {
        const response = await fetch(`http://127.0.0.1:${port}${path}`, {
          method: "POST",
          headers: { ...headers, "content-type": "application/json" },
          body: '{"message":"Hi"}'
        })
        return {
          status: response.status,
          headers: Object.fromEntries(response.headers),
          text: await response.text()
        }
      })
    return { close: Scope.close(scope, Exit.void), handled: () => handled, post }
  })

describe("A request that was refused with a time to retry", () => {
  it.scopedLive(
    "is refused again without being handled if it is repeated at once, with its own request id",
    () =>
      Effect.gen(function* () {
        const { handled, post } = yield* refusing(5)
        const first = yield* post({ ...keyHeader("spk_all"), "x-request-id": "first" })
        expect([first.status, first.headers["retry-after"], handled()]).toEqual([503, "5", 1])
        const again = yield* post({ ...keyHeader("spk_all"), "x-request-id": "a-longer-id" })
        expect(handled()).toBe(1)
        expect(again.text).toBe(first.text.replace("first", "a-longer-id"))
        const { date: _, ...headers } = again.headers
        const { date: __, ...before } = first.headers
        expect(headers).toEqual({
          ...before,
          "x-request-id": "a-longer-id",
          "content-length": String(again.text.length)
        })
      })
  )

  it.scopedLive("has its own request id in the answer, of any length", () =>
    Effect.gen(function* () {
      const { handled, post } = yield* refusing(5)
      yield* post({ ...keyHeader("spk_all"), "x-request-id": "5" })
      const again = yield* post({ ...keyHeader("spk_all"), "x-request-id": "6" })
      expect(handled()).toBe(1)
      expect(JSON.parse(again.text)).toMatchObject({
        error: { details: { retryAfterSeconds: 5 } },
        meta: { requestId: "6" }
      })
    })
  )

  it.scopedLive("is answered later than other requests that came after it", () =>
    Effect.gen(function* () {
      const { post } = yield* refusing(5)
      yield* post(keyHeader("spk_all"))
      const order = yield* Ref.make<ReadonlyArray<string>>([])
      const told = (name: string, answer: ReturnType<typeof post>) =>
        Effect.zipRight(
          answer,
          Ref.update(order, (before) => [...before, name])
        )
      yield* Effect.all(
        [
          told("again", post(keyHeader("spk_all"))),
          Effect.delay(told("other", post(keyHeader("spk_chat"))), "20 millis")
        ],
        { concurrency: 2 }
      )
      expect(yield* order).toEqual(["other", "again"])
    })
  )

  it.scopedLive("is answered when the server closes meanwhile", () =>
    Effect.gen(function* () {
      const { close, post } = yield* refusing(5)
      yield* post(keyHeader("spk_all"))
      const again = yield* Effect.fork(post({ ...keyHeader("spk_all"), "x-request-id": "again" }))
      yield* Effect.sleep("100 millis")
      yield* close
      const { status, text } = yield* Fiber.join(again)
      expect([status, text.includes("again")]).toEqual([503, true])
    })
  )

  it.scopedLive("is handled again a second later", () =>
    Effect.gen(function* () {
      const { handled, post } = yield* refusing(5)
      yield* post(keyHeader("spk_all"))
      yield* post(keyHeader("spk_all"))
      yield* Effect.sleep("1100 millis")
      yield* post(keyHeader("spk_all"))
      expect(handled()).toBe(2)
    })
  )

  it.scopedLive(
    "does not affect others: another key, another address, or requests without a credential",
    () =>
      Effect.gen(function* () {
        const { handled, post } = yield* refusing(5)
        yield* post(keyHeader("spk_all"))
        yield* post(keyHeader("spk_chat"))
        expect(handled()).toBe(2)
        yield* post(keyHeader("spk_all"), "/v1/chat/stream?other")
        expect(handled()).toBe(3)
        for (let tries = 0; tries < 2; tries++) expect((yield* post({})).status).toBe(401)
      })
  )

  it.scopedLive("is handled each time if the refusal had no time, or if requests are traced", () =>
    Effect.gen(function* () {
      const untimed = yield* refusing(undefined)
      const traced = yield* refusing(5, { told: true })
      for (const { handled, post } of [untimed, traced]) {
        yield* post(keyHeader("spk_all"))
        yield* post(keyHeader("spk_all"))
        expect(handled()).toBe(2)
      }
    })
  )
})
