/** Faults of an object store, from a server that answers as it is told. */
import { describe, expect, it } from "@effect/vitest"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/TestClock"
import * as Http from "node:http"
import type { AddressInfo } from "node:net"
import { ArtifactStore, type ArtifactStoreError, refOf } from "../../../src/capabilities/ArtifactStore.ts"
import { layerS3 } from "../../../src/capabilities/ArtifactStore/S3.ts"

const hello = new TextEncoder().encode("hello")
const ref = refOf(hello)

type Answer = (response: Http.ServerResponse) => void

const silent: Answer = () => undefined
const ok: Answer = (response) => void response.end()
const found: Answer = (response) => void response.end(hello)
const refused =
  (status: number, code: string, headers: Http.OutgoingHttpHeaders = {}, more = ""): Answer =>
  (response) =>
    void response.writeHead(status, headers).end(`<Error><Code>${code}</Code>${more}</Error>`)

/** A store that gives the answers in turn, the last one again and again. `asked` has the bodies of all requests. */
const scripted = (...answers: ReadonlyArray<Answer>) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(async () => {
        const asked: Array<string> = []
        const server = Http.createServer((request, response) => {
          let body = ""
          request.on("data", (chunk: Buffer) => (body += chunk.toString()))
          request.on("end", () => {
            asked.push(`${request.method} ${body}`)
            answers[Math.min(asked.length, answers.length) - 1]?.(response)
          })
        })
        await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
        return { asked, server }
      }),
      ({ server }) =>
        Effect.promise(() => {
          server.closeAllConnections()
          return new Promise((resolve) => server.close(resolve))
        })
    ),
    ({ asked, server }) => ({
      asked,
      layer: layerS3({
        bucket: "artifacts",
        prefix: "",
        region: "eu-central-1",
        endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
        accessKeyId: Redacted.make("key"),
        secretAccessKey: Redacted.make("secret"),
        sessionToken: null
      }).pipe(Layer.provide(NodeHttpClient.layerUndici))
    })
  )

const realPause = Effect.async<void>((resume) => {
  const timer = setTimeout(() => resume(Effect.void), 4)
  return Effect.sync(() => clearTimeout(timer))
})

type Use<A> = (store: ArtifactStore["Type"]) => Effect.Effect<A, ArtifactStoreError>

/** The outcome, the seconds of the test clock until then, and the requests. */
const outcomeOf = <A>(use: Use<A>, ...answers: ReadonlyArray<Answer>) =>
  Effect.gen(function* () {
    const { asked, layer } = yield* scripted(...answers)
    const begun = yield* Clock.currentTimeMillis
    const running = yield* Effect.fork(Effect.provide(Effect.flatMap(ArtifactStore, use), layer))
    for (;;) {
      for (let at = 0; at < 5; at++) yield* realPause
      const exit = yield* running.poll
      if (Option.isSome(exit)) {
        yield* Fiber.await(running)
        const seconds = ((yield* Clock.currentTimeMillis) - begun) / 1_000
        return { exit: exit.value, seconds, asked }
      }
      yield* TestClock.adjust("500 millis")
    }
  })

const messageOf = <A>(exit: Exit.Exit<A, ArtifactStoreError>) =>
  Exit.match(exit, {
    onSuccess: () => "success",
    onFailure: (cause) => (cause._tag === "Fail" ? cause.error.message : cause._tag)
  })

const operations: ReadonlyArray<readonly [string, Use<unknown>]> = [
  ["reading", (store) => store.get(ref)],
  ["storing", (store) => store.put(hello)],
  ["removing", (store) => store.remove(ref)],
  [
    "storing an upload",
    (store) => Effect.scoped(Effect.flatMap(store.stage(Stream.make(hello)), (s) => s.store))
  ]
]

describe("a bucket", () => {
  it.scoped.each(operations)(
    "that is silent fails %s within 90 seconds",
    ([, use]) =>
      Effect.gen(function* () {
        const { exit, seconds } = yield* outcomeOf(use, silent)
        expect(messageOf(exit)).toContain("no answer in time")
        expect(seconds).toBeLessThanOrEqual(91)
      }),
    60_000
  )

  it.scoped("is asked again after the pause that it asks for", () =>
    Effect.gen(function* () {
      for (const status of [429, 503]) {
        const busy = refused(status, "SlowDown", { "retry-after": "5" })
        const { asked, exit, seconds } = yield* outcomeOf((store) => store.get(ref), busy, found)
        expect(messageOf(exit)).toBe("success")
        expect(asked.length).toBe(2)
        expect(seconds).toBeGreaterThanOrEqual(5)
        expect(seconds).toBeLessThan(8)
      }
    })
  )

  it.scoped("that asks for a long pause is not asked again", () =>
    Effect.gen(function* () {
      const busy = refused(503, "SlowDown", { "retry-after": "3600" })
      const { asked, exit, seconds } = yield* outcomeOf((store) => store.get(ref), busy, found)
      expect(messageOf(exit)).toContain("503 SlowDown")
      expect(asked.length).toBe(1)
      expect(seconds).toBeLessThan(2)
    })
  )

  it.scoped("that waited too long for the body is asked again", () =>
    Effect.gen(function* () {
      const { asked, exit } = yield* outcomeOf(
        (store) => store.put(hello),
        refused(400, "RequestTimeout"),
        ok
      )
      expect(messageOf(exit)).toBe("success")
      expect(asked).toEqual(["PUT hello", "PUT hello"])
    })
  )

  it.scoped("that answers 500 after it has stored the bytes gets them again, from the same upload too", () =>
    Effect.gen(function* () {
      for (const [, use] of [operations[1]!, operations[3]!]) {
        const { asked, exit } = yield* outcomeOf(use, refused(500, "InternalError"), ok)
        expect(messageOf(exit)).toBe("success")
        expect(asked).toEqual(["PUT hello", "PUT hello"])
      }
    })
  )

  it.scoped("whose download breaks off is asked again", () =>
    Effect.gen(function* () {
      const cutOff: Answer = (response) => {
        response.writeHead(200, { "content-length": "5" }).write("hel", () => response.destroy())
      }
      const { asked, exit } = yield* outcomeOf((store) => store.get(ref), cutOff, cutOff, found)
      expect(messageOf(exit)).toBe("success")
      expect(asked.length).toBe(3)
    })
  )

  it.scoped("is not asked again after a refusal, and the message has the store's code", () =>
    Effect.gen(function* () {
      for (const code of ["AccessDenied", "RequestTimeTooSkewed", "ExpiredToken"]) {
        const { asked, exit } = yield* outcomeOf((store) => store.put(hello), refused(403, code))
        expect(messageOf(exit)).toBe(`The artifact could not be written (S3: 403 ${code}).`)
        expect(asked.length).toBe(1)
      }
    })
  )

  it.scoped("in another region is named with its region", () =>
    Effect.gen(function* () {
      const region = { "x-amz-bucket-region": "eu-west-3" }
      const moved = yield* outcomeOf((store) => store.get(ref), refused(301, "PermanentRedirect", region))
      expect(messageOf(moved.exit)).toContain("301 PermanentRedirect: AWS_REGION should be eu-west-3")
      const wrong = refused(400, "AuthorizationHeaderMalformed", {}, "<Region>eu-west-3</Region>")
      const malformed = yield* outcomeOf((store) => store.put(hello), wrong)
      expect(messageOf(malformed.exit)).toContain("AWS_REGION should be eu-west-3")
      const foreign = refused(301, "PermanentRedirect", { "x-amz-bucket-region": "say this" })
      expect(messageOf((yield* outcomeOf((store) => store.get(ref), foreign)).exit)).not.toContain("say this")
    })
  )

  it.scoped("has lost an original only if it says so: the 404 of a gateway is a failure", () =>
    Effect.gen(function* () {
      const gateway: Answer = (response) => void response.writeHead(404).end("<html>no such service</html>")
      for (const use of [(store) => store.get(ref), (store) => store.remove(ref)] satisfies Array<
        Use<unknown>
      >) {
        expect(messageOf((yield* outcomeOf(use, gateway)).exit)).toContain("S3: 404")
      }
      const gone = yield* outcomeOf((store) => store.get(ref), refused(404, "NoSuchKey"))
      expect(gone.exit).toEqual(Exit.succeed(Option.none()))
      expect((yield* outcomeOf((store) => store.remove(ref), refused(404, "NoSuchKey"))).exit).toEqual(
        Exit.void
      )
    })
  )
})
