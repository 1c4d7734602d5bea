/** Cost and answers of a sign-in over HTTP. Work is counted, never timed. */
import * as Http from "node:http"
import { BlockList } from "node:net"
import * as HttpServer from "@effect/platform/HttpServer"
import { expect, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Tracer from "effect/Tracer"
import { Credentials } from "../../../src/capabilities/Credentials.ts"
import { layerScrypt } from "../../../src/capabilities/Credentials/Scrypt.ts"
import { reset, TestDatabase } from "../../TestDatabase.ts"
import { accountsServer, appUrl, call, password, signedIn } from "./AccountsServer.ts"

const live = { timeout: "60 seconds", excludeTestServices: true } as const

/** Hashes of passwords that were asked for, and statements that were sent. */
const work = { hashes: 0, statements: 0 }

const counted = (backend: Layer.Layer<Credentials>) =>
  Layer.effect(
    Credentials,
    Effect.map(Credentials, (real): Credentials["Type"] => ({
      ...real,
      hashPassword: (...given) => Effect.suspend(() => (work.hashes++, real.hashPassword(...given))),
      verifyPassword: (...given) => Effect.suspend(() => (work.hashes++, real.verifyPassword(...given)))
    }))
  ).pipe(Layer.provide(backend))

const counting = Tracer.make({
  span: (...[name, parent, context, links, startTime, kind]) => {
    if (name === "sql.execute") work.statements++
    return {
      _tag: "Span",
      name,
      spanId: "1",
      traceId: "1",
      parent,
      context,
      status: { _tag: "Started", startTime },
      attributes: new Map(),
      links,
      sampled: true,
      kind,
      end: () => undefined,
      attribute: () => undefined,
      event: () => undefined,
      addLinks: () => undefined
    }
  },
  context: (run) => run()
})

/** The status of a sign-in from `address`, one of this machine's own; an interrupted one hangs up. */
const from = (address: string, email: string, secret: string, headers: Record<string, string> = {}) =>
  Effect.flatMap(HttpServer.HttpServer, (server) =>
    Effect.async<number>((resume) => {
      if (server.address._tag !== "TcpAddress") throw new Error("The server has no port.")
      const request = Http.request({
        host: "127.0.0.1",
        port: server.address.port,
        path: "/api/auth/login",
        method: "POST",
        localAddress: address,
        agent: false,
        headers: { "content-type": "application/json", origin: appUrl, ...headers }
      })
      request.on("error", () => resume(Effect.succeed(0)))
      request.on("response", (response) => {
        response.resume()
        response.on("end", () => resume(Effect.succeed(response.statusCode ?? 0)))
      })
      request.end(JSON.stringify({ email, password: secret }))
      return Effect.sync(() => request.destroy())
    })
  )

const home = "127.0.0.1"
const elsewhere = "127.0.0.2"
const email = "ada@example.com"
const nobody = (place: number) => `nobody${place}@example.com`

const crowd = (address: string, size: number) =>
  Effect.all(
    Array.from({ length: size }, (_, place) => from(address, nobody(place), "a wrong password")),
    { concurrency: "unbounded" }
  )

/** Slow enough that what is asked for at the same time has to wait. */
const slow = layerScrypt({ log2N: 14, r: 8, p: 1 })

const Slow = accountsServer({ credentials: counted(slow) }).pipe(Layer.provideMerge(TestDatabase))

layer(Slow, live)("Hundreds of sign-ins from one address", (it) => {
  it.effect("neither refuse nor delay a sign-in from another address", () =>
    Effect.gen(function* () {
      yield* reset
      yield* signedIn(email)
      work.hashes = 0
      let done = 0
      const flood = yield* Effect.fork(
        Effect.forEach(
          Array.from({ length: 120 }).keys(),
          (place) =>
            Effect.tap(from(elsewhere, nobody(place), "a wrong password"), () => Effect.sync(() => done++)),
          { concurrency: "unbounded" }
        )
      )
      yield* Effect.repeat(
        Effect.delay(
          Effect.sync(() => work.hashes),
          "5 millis"
        ),
        {
          until: (hashes) => hashes >= 100
        }
      )
      for (let place = 0; place < 3; place++) expect(yield* from(home, email, password)).toBe(200)
      // The other sign-ins still run: this one did not wait for them.
      expect(done).toBeLessThan(60)
      expect(new Set(yield* Fiber.join(flood))).toEqual(new Set([401]))
    })
  )

  it.effect("leave the queue when their clients disconnect", () =>
    Effect.gen(function* () {
      yield* reset
      yield* signedIn(email)
      work.hashes = 0
      const flood = yield* Effect.fork(crowd(home, 100))
      yield* Effect.repeat(
        Effect.delay(
          Effect.sync(() => work.hashes),
          "5 millis"
        ),
        {
          until: (hashes) => hashes >= 90
        }
      )
      yield* Fiber.interrupt(flood)
      const before = work.hashes
      expect(yield* from(home, email, password)).toBe(200)
      expect(work.hashes - before).toBeLessThanOrEqual(11)
    })
  )
})

const Counted = accountsServer({ credentials: counted(layerScrypt({ log2N: 10, r: 8, p: 1 })) }).pipe(
  Layer.provide(Layer.setTracer(counting)),
  Layer.provideMerge(TestDatabase)
)

/** What a request answers, without what differs from request to request, and what it cost. */
const told = (path: string, body: unknown) =>
  Effect.gen(function* () {
    const before = { ...work }
    const { error, headers, status } = yield* call("POST", path, { body })
    const varying = ["date", "x-request-id"]
    const kept = [...headers].filter(([name]) => !varying.includes(name))
    return {
      status,
      error,
      headers: kept,
      hashes: work.hashes - before.hashes,
      statements: work.statements - before.statements
    }
  })

layer(Counted, live)("The existence of an account", (it) => {
  it.effect("is not revealed by a sign-in: status, body, headers and work are the same", () =>
    Effect.gen(function* () {
      yield* reset
      const { cookie } = yield* signedIn(email)
      yield* call("POST", "/api/users", { cookie, body: { email: "invited@example.com", role: "admin" } })
      const given = { email: "given@example.com", role: "agent", password }
      yield* call("POST", "/api/users", { cookie, body: given })
      const login = (address: string) =>
        told("/api/auth/login", { email: address, password: "a wrong password" })
      const unknown = yield* login("unknown@example.com")
      expect(unknown).toMatchObject({ status: 401, hashes: 1, error: { code: "UNAUTHORIZED" } })
      expect(unknown.statements).toBeGreaterThan(2)
      for (const known of [email, "ADA@example.com ", "invited@example.com", "given@example.com"]) {
        expect([known, yield* login(known)]).toEqual([known, unknown])
      }
      // Throttled alike, and then without a hash.
      for (let failures = 2; failures <= 10; failures++) {
        yield* login("unknown@example.com")
        yield* login("given@example.com")
      }
      const throttled = yield* login("unknown@example.com")
      expect(throttled).toMatchObject({ status: 429, hashes: 0 })
      const { error: _, headers: __, ...cost } = throttled
      expect(yield* login("given@example.com")).toMatchObject({ ...cost, error: { code: "RATE_LIMITED" } })
    })
  )

  it.effect(
    "is not revealed by an invitation's token: unknown, used, expired and void ones get the same answer without a hash",
    () =>
      Effect.gen(function* () {
        yield* reset
        const { cookie } = yield* signedIn(email)
        const invite = (name: string) =>
          call("POST", "/api/users", { cookie, body: { email: `${name}@example.com`, role: "agent" } })
        const choose = (token: string) => told("/api/auth/password", { token, password })
        const none = yield* choose("nothing-that-anybody-was-given")
        expect(none).toMatchObject({ status: 401, hashes: 0 })
        const used = (yield* invite("used")).data.invitation.token
        expect((yield* choose(used)).status).toBe(200)
        const changed = (yield* invite("changed")).data
        yield* call("PATCH", `/api/users/${changed.user.id}`, { cookie, body: { role: "owner" } })
        const replaced = (yield* invite("replaced")).data
        yield* call("POST", `/api/users/${replaced.user.id}/invitation`, { cookie })
        for (const token of [used, changed.invitation.token, replaced.invitation.token]) {
          expect(yield* choose(token)).toEqual(none)
        }
      })
  )

  it.effect("is protected by a limit of ten guesses, also for concurrent ones, which cost no hash", () =>
    Effect.gen(function* () {
      yield* reset
      yield* signedIn(email)
      work.hashes = 0
      const guesses = yield* Effect.replicateEffect(from(home, email, "a wrong password"), 30).pipe(
        Effect.withConcurrency("unbounded")
      )
      const count = (status: number) => guesses.filter((each) => each === status).length
      expect([count(401), count(429), work.hashes]).toEqual([10, 20, 10])
    })
  )
})

const proxies = new BlockList()
proxies.addAddress(home, "ipv4")

const Proxied = accountsServer({ trustedProxies: proxies }).pipe(Layer.provideMerge(TestDatabase))

layer(Proxied, live)("A throttle", (it) => {
  const via = (address: string, secret: string, connection = home) =>
    from(connection, email, secret, { "x-forwarded-for": address })

  it.effect("does not lock out sign-ins from other addresses after any number of failures", () =>
    Effect.gen(function* () {
      yield* reset
      yield* signedIn(email)
      for (let failures = 0; failures < 25; failures++) yield* via("198.51.100.7", "a wrong password")
      expect(yield* via("198.51.100.7", password)).toBe(429)
      expect(yield* via("203.0.113.9", password)).toBe(200)
    })
  )

  it.effect("counts an IPv6 network as one address, and ignores headers of untrusted proxies", () =>
    Effect.gen(function* () {
      yield* reset
      yield* signedIn(email)
      for (let place = 0; place < 10; place++) {
        expect(yield* via(`2001:db8:1:2::${place + 1}`, "a wrong password")).toBe(401)
      }
      expect(yield* via("2001:db8:1:2:ffff::1", password)).toBe(429)
      expect(yield* via("2001:db8:1:3::1", password)).toBe(200)
      for (let place = 0; place < 10; place++) {
        expect(yield* via(`198.51.100.${place}`, "a wrong password", elsewhere)).toBe(401)
      }
      expect(yield* via("198.51.100.77", password, elsewhere)).toBe(429)
    })
  )
})
