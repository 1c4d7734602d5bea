/** The API as a web-standard handler, where its service ends: what is being answered, and what is being read. */
import { describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { expect } from "vitest"
import * as Web from "../../../src/http/server/Web.ts"
import * as WebBodies from "../../../src/http/server/WebBodies.ts"
import { api, keyHeader, Script, script, turn } from "../PublicServer.ts"
import { textDelta } from "../chat/UiStream.ts"

const ended = new Error("The service has ended")

/** A handler whose turns are `parts`, and its end. */
const opened = (start: Effect.Effect<ReturnType<typeof turn>>) =>
  Effect.gen(function* () {
    const context = yield* Layer.build(script)
    const scope = yield* Scope.make()
    const bodies = WebBodies.make()
    const handler = yield* Web.handler(api, bodies).pipe(Scope.extend(scope), Effect.provide(context))
    yield* Effect.flatMap(Effect.provide(Script, context), (scripted) => Ref.set(scripted.start, () => start))
    const ask = () =>
      handler(
        new Request("http://spoke.test/v1/chat/stream", {
          method: "POST",
          headers: { ...keyHeader("spk_all"), "content-type": "application/json" },
          body: JSON.stringify({ message: "Hi" })
        })
      )
    return { ask, bodies, close: Scope.close(scope, Exit.void) }
  })

describe("A web handler that is closed", () => {
  it.scopedLive("interrupts unanswered requests, and answers that the server is stopping", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const interrupted = yield* Deferred.make<void>()
      const { ask, close } = yield* opened(
        Effect.zipRight(Deferred.succeed(begun, undefined), Effect.never).pipe(
          Effect.onInterrupt(() => Deferred.succeed(interrupted, undefined))
        )
      )
      const answer = ask()
      yield* Deferred.await(begun)
      yield* close
      yield* Deferred.await(interrupted)
      expect((yield* Effect.promise(() => answer)).status).toBe(503)
    })
  )

  it.scopedLive("keeps the content of a finished stream, and fails an unfinished one", () =>
    Effect.gen(function* () {
      const streams = [
        Stream.make(textDelta("All of it")),
        Stream.concat(Stream.make(textDelta("A part")), Stream.never)
      ]
      const next = yield* Ref.make(0)
      const interrupted = yield* Deferred.make<void>()
      const { ask, bodies } = yield* opened(
        Effect.map(
          Ref.getAndUpdate(next, (place) => place + 1),
          (place) =>
            turn(
              Stream.ensuring(
                streams[place] ?? Stream.empty,
                place === 1 ? Deferred.succeed(interrupted, undefined) : Effect.void
              )
            )
        )
      )
      const [whole, stuck] = [yield* Effect.promise(ask), yield* Effect.promise(ask)]
      yield* bodies.end(ended)
      yield* Deferred.await(interrupted)
      expect(yield* Effect.promise(() => whole.text())).toContain("All of it")
      expect(yield* Effect.promise(() => stuck.text().catch((thrown: unknown) => thrown))).toBe(ended)
    })
  )

  it.scopedLive("has interrupted the stream of a client that disconnected before its answer", () =>
    Effect.gen(function* () {
      const interrupted = yield* Deferred.make<void>()
      const bodies = WebBodies.make()
      const source = new ReadableStream<Uint8Array>({
        pull: (controller) => controller.enqueue(new Uint8Array(8)),
        cancel: () => Effect.runPromise(Effect.asVoid(Deferred.succeed(interrupted, undefined)))
      })
      const request = new Request("http://spoke.test/", { signal: AbortSignal.abort() })
      expect(bodies.of(request, new Response(source)).status).toBe(WebBodies.clientClosedRequestStatus)
      yield* Deferred.await(interrupted)
    })
  )
})
