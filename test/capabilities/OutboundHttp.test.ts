import { describe, expect, it } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import * as Http from "node:http"
import * as Net from "node:net"
import * as zlib from "node:zlib"
import { OutboundHttp, OutboundHttpError, type OutboundRequest } from "../../src/capabilities/OutboundHttp.ts"
import { parseAllowList } from "../../src/capabilities/OutboundHttp/AddressRules.ts"
import type { Resolver } from "../../src/capabilities/OutboundHttp/Destination.ts"
import { layerUndici } from "../../src/capabilities/OutboundHttp/Undici.ts"

type Handler = (request: Http.IncomingMessage, response: Http.ServerResponse) => void

const listening = <S extends Net.Server>(
  server: S,
  sockets: Set<Net.Socket>,
  port: number,
  address: string
) =>
  Effect.acquireRelease(
    Effect.async<{ readonly port: number; readonly server: S }>((resume) => {
      server.on("connection", (socket: Net.Socket) => {
        sockets.add(socket)
        socket.on("error", () => undefined)
      })
      server.listen(port, address, () => {
        const bound = server.address()
        resume(Effect.succeed({ server, port: typeof bound === "object" && bound !== null ? bound.port : 0 }))
      })
    }),
    () =>
      Effect.async<void>((resume) => {
        for (const socket of sockets) socket.destroy()
        server.close(() => resume(Effect.void))
      })
  )

/** A server on a loopback address, for as long as the test runs. */
const serve = (handler: Handler, at: { readonly address?: string; readonly port?: number } = {}) =>
  Effect.suspend(() =>
    listening(Http.createServer(handler), new Set(), at.port ?? 0, at.address ?? "127.0.0.1")
  )

const nobody: Resolver = (hostname) =>
  Effect.fail(new OutboundHttpError({ reason: "Unresolved", message: `No ${hostname} here.` }))

const answering =
  (names: Readonly<Record<string, ReadonlyArray<string>>>): Resolver =>
  (hostname) => {
    const found = names[hostname]
    return found === undefined ? nobody(hostname) : Effect.succeed(found)
  }

/** Answers each question with the next entry, and counts the questions. */
const changing = (...answers: ReadonlyArray<ReadonlyArray<string>>) => {
  const state = { asked: 0 }
  const resolver: Resolver = () =>
    Effect.sync(() => {
      state.asked += 1
      return answers[Math.min(state.asked, answers.length) - 1] ?? []
    })
  return { state, resolver }
}

const http = (allow: string, resolver: Resolver = nobody) =>
  layerUndici({ allow: Either.getOrThrow(parseAllowList(allow)), resolver })

const fetch = (request: OutboundRequest) =>
  Effect.flatMap(OutboundHttp, (outbound) => outbound.fetch(request))

const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes)

/** The failure of a request that must not succeed. */
const failure = (request: OutboundRequest) => Effect.flip(fetch(request))

const names = {
  localhost: ["127.0.0.1", "::1"],
  "private.example": ["10.0.0.1"],
  "mixed.example": ["93.184.216.34", "192.168.0.1"],
  "mixed6.example": ["2606:2800:21f:cb07::1", "::1"],
  "zone.example": ["fe80::1%eth0"],
  "mapped.example": ["::ffff:127.0.0.1"],
  "nat64.example": ["64:ff9b::a00:1"],
  "strange.example": ["0x7f.1"],
  "metadata.google.internal": ["169.254.169.254"],
  "instance-data.ec2.internal": ["fd00:ec2::254"],
  "empty.example": []
}

const hostile = [
  ["http://127.0.0.1/", "Refused"],
  ["http://127.0.0.1:22/", "Refused"],
  ["https://127.0.0.1/", "Refused"],
  ["http://127.1/", "Refused"],
  ["http://127.0.1/", "Refused"],
  ["http://2130706433/", "Refused"],
  ["http://0x7f000001/", "Refused"],
  ["http://0x7f.0.0.1/", "Refused"],
  ["http://0x7f.1/", "Refused"],
  ["http://0177.0.0.1/", "Refused"],
  ["http://017700000001/", "Refused"],
  ["http://0177.0.0.0x1/", "Refused"],
  ["http://127.0.0.1./", "Refused"],
  ["http://%31%32%37.0.0.1/", "Refused"],
  ["http://①②⑦.⓪.⓪.①/", "Refused"],
  ["http://127。0。0。1/", "Refused"],
  ["http://127.0.0.1/", "Refused"],
  ["http:127.0.0.1", "Refused"],
  ["http:\\\\127.0.0.1\\", "Refused"],
  ["http:////127.0.0.1/", "Refused"],
  [" http://127.0.0.1/ ", "Refused"],
  ["ht\ntp://127.0.0.1/", "Refused"],
  ["HTTP://127.0.0.1/", "Refused"],
  ["http://0/", "Refused"],
  ["http://0.0.0.0/", "Refused"],
  ["http://10.0.0.1/", "Refused"],
  ["http://167772161/", "Refused"],
  ["http://012.1/", "Refused"],
  ["http://172.16.0.1/", "Refused"],
  ["http://192.168.1.1/admin", "Refused"],
  ["http://3232235777/", "Refused"],
  ["http://100.64.0.1/", "Refused"],
  ["http://198.18.0.1/", "Refused"],
  ["http://192.0.0.170/", "Refused"],
  ["http://192.0.2.5/", "Refused"],
  ["http://203.0.113.5/", "Refused"],
  ["http://224.0.0.251/", "Refused"],
  ["http://240.0.0.1/", "Refused"],
  ["http://255.255.255.255/", "Refused"],
  ["http://169.254.169.254/latest/meta-data/", "Refused"],
  ["http://2852039166/latest/meta-data/", "Refused"],
  ["http://0xa9fea9fe/", "Refused"],
  ["http://0251.0376.0251.0376/", "Refused"],
  ["http://169.254.170.2/v2/credentials", "Refused"],
  ["http://100.100.100.200/latest/", "Refused"],
  ["http://168.63.129.16/machine", "Refused"],
  ["http://[::]/", "Refused"],
  ["http://[::1]/", "Refused"],
  ["http://[0:0:0:0:0:0:0:1]:8080/", "Refused"],
  ["http://[::127.0.0.1]/", "Refused"],
  ["http://[::8.8.8.8]/", "Refused"],
  ["http://[::ffff:127.0.0.1]/", "Refused"],
  ["http://[::ffff:7f00:1]/", "Refused"],
  ["http://[::ffff:0:7f00:1]/", "Refused"],
  ["http://[::ffff:169.254.169.254]/", "Refused"],
  ["http://[64:ff9b::10.0.0.1]/", "Refused"],
  ["http://[64:ff9b::a9fe:a9fe]/", "Refused"],
  ["http://[64:ff9b:1::8.8.8.8]/", "Refused"],
  ["http://[2002:7f00:1::]/", "Refused"],
  ["http://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/", "Refused"],
  ["http://[2001:db8::1]/", "Refused"],
  ["http://[fc00::1]/", "Refused"],
  ["http://[fd00:ec2::254]/latest/meta-data/", "Refused"],
  ["http://[fe80::1]/", "Refused"],
  ["http://[fec0::1]/", "Refused"],
  ["http://[ff02::1]/", "Refused"],
  ["http://[100::1]/", "Refused"],
  ["http://[2a00::5efe:10.0.0.1]/", "Refused"],
  ["http://localhost/", "Refused"],
  ["http://LOCALHOST./", "Refused"],
  ["http://private.example/", "Refused"],
  ["http://private.example./", "Refused"],
  ["http://mixed.example/", "Refused"],
  ["http://mixed6.example/", "Refused"],
  ["http://zone.example/", "Refused"],
  ["http://mapped.example/", "Refused"],
  ["http://nat64.example/", "Refused"],
  ["http://strange.example/", "Refused"],
  ["http://metadata.google.internal/computeMetadata/v1/", "Refused"],
  ["http://instance-data.ec2.internal/", "Refused"],
  ["http://empty.example/", "Unresolved"],
  ["http://unknown.example/", "Unresolved"],
  ["http://[fe80::1%25eth0]/", "InvalidUrl"],
  ["http://256.256.256.256/", "InvalidUrl"],
  ["http://1.2.3.4.5/", "InvalidUrl"],
  ["http://127.0.0.1:99999/", "InvalidUrl"],
  ["http://user@127.0.0.1/", "InvalidUrl"],
  ["http://user:s3cret@public.example/", "InvalidUrl"],
  ["http://public.example@127.0.0.1/", "InvalidUrl"],
  ["http://:s3cret@public.example/", "InvalidUrl"],
  ["http://public.example../", "InvalidUrl"],
  ["http://", "InvalidUrl"],
  ["http://./", "InvalidUrl"],
  ["", "InvalidUrl"],
  ["//127.0.0.1/", "InvalidUrl"],
  ["/etc/passwd", "InvalidUrl"],
  ["file:///etc/passwd", "InvalidUrl"],
  ["ftp://127.0.0.1/", "InvalidUrl"],
  ["gopher://127.0.0.1:6379/_INFO", "InvalidUrl"],
  ["dict://127.0.0.1:11211/", "InvalidUrl"],
  ["unix:///var/run/docker.sock", "InvalidUrl"],
  ["data:text/plain,hello", "InvalidUrl"],
  ["javascript:alert(1)", "InvalidUrl"],
  ["blob:http://127.0.0.1/1", "InvalidUrl"],
  ["ws://127.0.0.1/", "InvalidUrl"]
] as const

describe("what a request may reach", () => {
  it.live.each(hostile)("%j ends as %s", ([url, reason]) =>
    Effect.gen(function* () {
      const error = yield* failure({ url })
      expect(error.reason).toBe(reason)
      expect(error.message).not.toMatch(/s3cret|passwd|admin|meta-data/)
    }).pipe(Effect.provide(http("", answering(names))))
  )

  it.live("a refusal says which rule and how to allow it", () =>
    Effect.gen(function* () {
      expect((yield* failure({ url: "http://10.0.0.1/secret?token=1" })).message).toBe(
        "Refused to fetch http://10.0.0.1: 10.0.0.1 is a private address. Add it to SPOKE_FETCH_ALLOW to allow it."
      )
    }).pipe(Effect.provide(http("")))
  )

  it.live("a refusal does not tell which private address a name has", () =>
    Effect.gen(function* () {
      expect((yield* failure({ url: "http://private.example/" })).message).toBe(
        "Refused to fetch http://private.example: private.example leads to a private address. Add it to SPOKE_FETCH_ALLOW to allow it."
      )
    }).pipe(Effect.provide(http("", answering(names))))
  )

  it.scopedLive("what is allowed is reached: by address, by host:port, by host and by CIDR", () =>
    Effect.gen(function* () {
      const { port } = yield* serve((_, response) => void response.end("hello"))
      const urls = [
        `http://127.0.0.1:${port}/`,
        `http://intranet.example:${port}/`,
        `http://intranet.example.:${port}/`
      ]
      const lists = ["127.0.0.1", "127.0.0.0/8", `127.0.0.1:${port}`]
      for (const allow of [...lists, `127.0.0.1,intranet.example:${port}`, "intranet.example, 127.0.0.1"])
        for (const url of urls) {
          const response = yield* fetch({ url }).pipe(
            Effect.provide(http(allow, answering({ "intranet.example": ["127.0.0.1"] })))
          )
          expect(text(response.body)).toBe("hello")
        }
    })
  )

  it.scopedLive("another port of an allowed host:port stays refused", () =>
    Effect.gen(function* () {
      const { port } = yield* serve((_, response) => void response.end("hello"))
      const error = yield* failure({ url: `http://127.0.0.1:${port}/` }).pipe(
        Effect.provide(http(`127.0.0.1:${port - 1}`))
      )
      expect(error.reason).toBe("Refused")
    })
  )

  it.scopedLive("IPv6 addresses are reached by their own spelling and by a name", () =>
    Effect.gen(function* () {
      const { port } = yield* serve((_, response) => void response.end("six"), { address: "::1" })
      const layer = http("[::1]", answering({ "six.example": ["0:0:0:0:0:0:0:1"] }))
      for (const url of [`http://[::1]:${port}/`, `http://six.example:${port}/`])
        expect(text((yield* fetch({ url }).pipe(Effect.provide(layer))).body)).toBe("six")
    })
  )

  it.scopedLive("the operating system's resolver finds localhost, and it is refused unless allowed", () =>
    Effect.gen(function* () {
      const { port } = yield* serve((_, response) => void response.end("hello"))
      const url = `http://localhost:${port}/`
      const refused = yield* failure({ url }).pipe(Effect.provide(layerUndici({ allow: [] })))
      expect(refused.reason).toBe("Refused")
      const allow = Either.getOrThrow(parseAllowList("localhost"))
      expect(text((yield* fetch({ url }).pipe(Effect.provide(layerUndici({ allow })))).body)).toBe("hello")
    })
  )
})

describe("DNS rebinding", () => {
  it.scopedLive("a name is looked up once a request, and the connection goes to the checked address", () =>
    Effect.gen(function* () {
      const { port } = yield* serve((_, response) => void response.end("private"))
      yield* serve((_, response) => void response.end("checked"), { address: "127.0.0.2", port })
      const { resolver, state } = changing(["127.0.0.2"], ["127.0.0.1"])
      const url = `http://rebinding.example:${port}/`
      yield* Effect.gen(function* () {
        expect(text((yield* fetch({ url })).body)).toBe("checked")
        expect(state.asked).toBe(1)
        // The connection of the first request is still open; it must not vouch for the second.
        expect((yield* failure({ url })).reason).toBe("Refused")
        expect(state.asked).toBe(2)
      }).pipe(Effect.provide(http("127.0.0.2", resolver)))
    })
  )

  it.scopedLive("a redirect to the same name is looked up and checked anew", () =>
    Effect.gen(function* () {
      const { port } = yield* serve(
        (_, response) => void response.writeHead(302, { location: "/again" }).end()
      )
      const { resolver, state } = changing(["127.0.0.1"], ["127.0.0.2"])
      const error = yield* failure({ url: `http://rebinding.example:${port}/` }).pipe(
        Effect.provide(http("127.0.0.1", resolver))
      )
      expect(error.reason).toBe("Refused")
      expect(state.asked).toBe(2)
    })
  )

  it.scopedLive("a name that moves is not served by a connection to its old address", () =>
    Effect.gen(function* () {
      const { port } = yield* serve((_, response) => void response.end("old"))
      yield* serve((_, response) => void response.end("new"), { address: "127.0.0.2", port })
      const { resolver } = changing(["127.0.0.1"], ["127.0.0.2"])
      const url = `http://moving.example:${port}/`
      const bodies = yield* Effect.all([fetch({ url }), fetch({ url })]).pipe(
        Effect.provide(http("127.0.0.0/8", resolver))
      )
      expect(bodies.map(({ body }) => text(body))).toEqual(["old", "new"])
    })
  )

  it.scopedLive("TLS asks for the name, at the checked address", () =>
    Effect.gen(function* () {
      const hello = yield* Deferred.make<string>()
      const server = Net.createServer((socket) =>
        socket.once("data", (bytes) => {
          Deferred.unsafeDone(hello, Effect.succeed(bytes.toString("latin1")))
          socket.destroy()
        })
      )
      const { port } = yield* listening(server, new Set(), 0, "127.0.0.1")
      const error = yield* failure({ url: `https://tls.example:${port}/` }).pipe(
        Effect.provide(http("127.0.0.1", answering({ "tls.example": ["127.0.0.1"] })))
      )
      expect(error.reason).toBe("Unreachable")
      expect(yield* Deferred.await(hello)).toContain("tls.example")
    })
  )

  it.scopedLive("the next of several checked addresses is tried when one does not accept", () =>
    Effect.gen(function* () {
      const { port } = yield* serve((_, response) => void response.end("second"), { address: "127.0.0.2" })
      const response = yield* fetch({ url: `http://several.example:${port}/` }).pipe(
        Effect.provide(http("127.0.0.0/8", answering({ "several.example": ["127.0.0.1", "127.0.0.2"] })))
      )
      expect(text(response.body)).toBe("second")
    })
  )
})

describe("redirects", () => {
  const redirecting =
    (status: number, location: string): Handler =>
    (_, response) =>
      void response.writeHead(status, { location }).end()

  it.live.each([
    ["http://10.0.0.1/", "Refused"],
    ["http://169.254.169.254/latest/", "Refused"],
    ["http://[::ffff:10.0.0.1]/", "Refused"],
    ["//0x7f.2/", "Refused"],
    ["https://private.example/", "Refused"],
    ["file:///etc/passwd", "InvalidUrl"],
    ["http://user:s3cret@127.0.0.1/", "InvalidUrl"],
    ["http://[", "InvalidUrl"]
  ] as const)("to %s end as %s", ([location, reason]) =>
    Effect.gen(function* () {
      const { port } = yield* serve(redirecting(302, location))
      const error = yield* failure({ url: `http://127.0.0.1:${port}/` }).pipe(
        Effect.provide(http("127.0.0.1", answering(names)))
      )
      expect(error.reason).toBe(reason)
    }).pipe(Effect.scoped)
  )

  const countdown: Handler = ({ url = "/0" }, response) => {
    const left = Number(url.slice(1))
    if (left === 0) response.end("arrived")
    else response.writeHead(301, { location: `/${left - 1}` }).end("moved")
  }

  it.scopedLive("five are followed, six are not", () =>
    Effect.gen(function* () {
      const { port } = yield* serve(countdown)
      yield* Effect.gen(function* () {
        const response = yield* fetch({ url: `http://127.0.0.1:${port}/5#part` })
        expect([response.status, response.url, text(response.body)]).toEqual([
          200,
          `http://127.0.0.1:${port}/0`,
          "arrived"
        ])
        expect((yield* failure({ url: `http://127.0.0.1:${port}/6` })).reason).toBe("TooManyRedirects")
        expect((yield* failure({ url: `http://127.0.0.1:${port}/1`, maxRedirects: 0 })).reason).toBe(
          "TooManyRedirects"
        )
      }).pipe(Effect.provide(http("127.0.0.1")))
    })
  )

  it.scopedLive("lead to an address in UTF-8 and to one in Latin-1, as their bytes say", () =>
    Effect.gen(function* () {
      const asked: Array<string | undefined> = []
      const { port } = yield* serve((request, response) => {
        asked.push(request.url)
        const bytes = { "/": Buffer.from("/über-uns", "utf8"), "/latin": Buffer.from("/\xfcber", "latin1") }
        const location = bytes[request.url as keyof typeof bytes]?.toString("latin1")
        response
          .writeHead(location === undefined ? 200 : 301, location === undefined ? {} : { location })
          .end()
      })
      for (const path of ["/", "/latin"])
        yield* Effect.provide(fetch({ url: `http://127.0.0.1:${port}${path}` }), http("127.0.0.1"))
      expect(asked).toEqual(["/", "/%C3%BCber-uns", "/latin", "/%C3%BCber"])
    })
  )

  it.scopedLive("without a location, and 304, are responses", () =>
    Effect.gen(function* () {
      const { port } = yield* serve(
        (request, response) => void response.writeHead(Number(request.url?.slice(1))).end()
      )
      for (const status of [302, 304]) {
        const response = yield* fetch({ url: `http://127.0.0.1:${port}/${status}` }).pipe(
          Effect.provide(http("127.0.0.1"))
        )
        expect(response.status).toBe(status)
      }
    })
  )

  interface Seen {
    readonly method: string | undefined
    readonly headers: Http.IncomingHttpHeaders
    readonly body: string
  }

  /** Redirects from one place to another, in the same origin or across, and tells what arrived there. */
  const journey = (status: number, across: boolean, request: Omit<OutboundRequest, "url">) =>
    Effect.gen(function* () {
      const seen = yield* Deferred.make<Seen>()
      const arrival: Handler = (incoming, response) => {
        const chunks: Array<Uint8Array> = []
        incoming.on("data", (chunk: Uint8Array) => chunks.push(chunk))
        incoming.on("end", () => {
          const { headers, method } = incoming
          Deferred.unsafeDone(seen, Effect.succeed({ method, headers, body: text(Buffer.concat(chunks)) }))
          response.end()
        })
      }
      const other = yield* serve(arrival)
      const location = across ? `http://127.0.0.1:${other.port}/there` : "/there"
      const { port } = yield* serve((incoming, response) =>
        incoming.url === "/there"
          ? arrival(incoming, response)
          : redirecting(status, location)(incoming, response)
      )
      yield* fetch({ ...request, url: `http://127.0.0.1:${port}/` })
      return yield* Deferred.await(seen)
    }).pipe(Effect.scoped, Effect.provide(http("127.0.0.1")))

  const headers = {
    Authorization: "Bearer canary",
    Cookie: "session=canary",
    "X-Api-Key": "canary",
    "Proxy-Authorization": "canary",
    Accept: "text/html",
    "User-Agent": "Test"
  }

  it.live("to another origin carry no header that may be a credential", () =>
    Effect.gen(function* () {
      const seen = yield* journey(302, true, { headers })
      expect(JSON.stringify(seen)).not.toContain("canary")
      expect([seen.headers.accept, seen.headers["user-agent"]]).toEqual(["text/html", "Test"])
    })
  )

  it.live("within the origin keep the caller's headers", () =>
    Effect.gen(function* () {
      const seen = yield* journey(302, false, { headers })
      expect([seen.headers.authorization, seen.headers.cookie, seen.headers["x-api-key"]]).toEqual([
        "Bearer canary",
        "session=canary",
        "canary"
      ])
      expect(seen.headers["proxy-authorization"]).toBeUndefined()
    })
  )

  it.live.each([
    [301, "POST", "GET"],
    [302, "POST", "GET"],
    [303, "POST", "GET"],
    [303, "PUT", "GET"],
    [303, "HEAD", "HEAD"],
    [302, "PUT", "PUT"],
    [307, "POST", "POST"],
    [308, "POST", "POST"]
  ] as const)("%i turns %s into %s", ([status, method, after]) =>
    Effect.gen(function* () {
      const body = method === "HEAD" ? {} : { body: "{}" }
      const seen = yield* journey(status, false, {
        method,
        headers: { "content-type": "application/json" },
        ...body
      })
      const kept = method !== "HEAD" && after !== "GET"
      expect([seen.method, seen.body]).toEqual([after, kept ? "{}" : ""])
      if (after === "GET") expect(seen.headers["content-type"]).toBeUndefined()
    })
  )

  it.live.each([307, 308])("%i does not hand a body to another origin", (status) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(journey(status, true, { method: "POST", body: "canary" }))
      expect(error.reason).toBe("Refused")
      expect(error.message).not.toContain("canary")
    })
  )
})

describe("the response", () => {
  const bytes = (length: number) => new Uint8Array(length).fill(97)

  const sending =
    (body: Uint8Array, encoding?: string): Handler =>
    (_, response) =>
      void response.writeHead(200, encoding === undefined ? {} : { "content-encoding": encoding }).end(body)

  const from = (handler: Handler, request: Omit<OutboundRequest, "url"> = {}) =>
    Effect.gen(function* () {
      const { port } = yield* serve(handler)
      return yield* fetch({ ...request, url: `http://127.0.0.1:${port}/` })
    }).pipe(Effect.scoped, Effect.provide(http("127.0.0.1")))

  it.live("of any status is a response; its repeated headers are joined", () =>
    Effect.gen(function* () {
      const response = yield* from((_, reply) => {
        reply.writeHead(503, { "X-One": ["a", "b"], "content-type": "text/plain" }).end("busy")
      })
      expect([response.status, response.headers["x-one"], text(response.body)]).toEqual([503, "a, b", "busy"])
    })
  )

  it.live.each([
    ["gzip", zlib.gzipSync("hello")],
    ["x-gzip", zlib.gzipSync("hello")],
    ["GZIP", zlib.gzipSync("hello")],
    ["br", zlib.brotliCompressSync("hello")],
    ["deflate", zlib.deflateSync("hello")],
    ["deflate", zlib.deflateRawSync("hello")],
    ["deflate, gzip", zlib.gzipSync(zlib.deflateSync("hello"))],
    ["identity", Buffer.from("hello")]
  ] as const)("in %s is decompressed", ([encoding, body]) =>
    Effect.gen(function* () {
      const response = yield* from(sending(body, encoding))
      expect(text(response.body)).toBe("hello")
      if (encoding !== "identity") expect(response.headers["content-encoding"]).toBeUndefined()
    })
  )

  it.live.each([
    ["gzip", Buffer.from("this is not gzip")],
    ["br", zlib.gzipSync("hello")],
    ["compress", Buffer.from("hello")],
    ["gzip, gzip, gzip", zlib.gzipSync(zlib.gzipSync(zlib.gzipSync("hello")))]
  ] as const)("that is not in the %s it promises is an error", ([encoding, body]) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(from(sending(body, encoding)))
      expect([error.reason, error.message]).toEqual([
        "Unreachable",
        expect.stringContaining("cannot be decompressed")
      ])
    })
  )

  it.live("may be as large as the limit and not a byte larger", () =>
    Effect.gen(function* () {
      expect((yield* from(sending(bytes(1_000)), { maxBytes: 1_000 })).body.length).toBe(1_000)
      expect((yield* Effect.flip(from(sending(bytes(1_001)), { maxBytes: 1_000 }))).reason).toBe("TooLarge")
    })
  )

  it.live.each([
    ["gzip", zlib.gzipSync(bytes(20_000_000))],
    ["br", zlib.brotliCompressSync(bytes(20_000_000))],
    ["deflate", zlib.deflateSync(bytes(20_000_000))],
    ["gzip, gzip", zlib.gzipSync(zlib.gzipSync(bytes(20_000_000)))]
  ] as const)("counts decompressed: a bomb in %s is too large", ([encoding, body]) =>
    Effect.gen(function* () {
      expect(body.length).toBeLessThan(100_000)
      const error = yield* Effect.flip(from(sending(body, encoding), { maxBytes: 1_000_000 }))
      expect(error.reason).toBe("TooLarge")
    })
  )

  it.live("is never unpacked further than the limit, however much there would be", () =>
    Effect.gen(function* () {
      const member = zlib.gzipSync(new Uint8Array(1_048_576))
      const bomb = Buffer.concat(Array.from({ length: 1_000 }, () => member))
      const before = process.resourceUsage().maxRSS
      const error = yield* Effect.flip(from(sending(bomb, "gzip"), { maxBytes: 2_000_000 }))
      expect(error.reason).toBe("TooLarge")
      // In KiB, where all of it would be a million.
      expect(process.resourceUsage().maxRSS - before).toBeLessThan(300_000)
    })
  )

  it.live("to HEAD has headers and no body, compressed or not", () =>
    Effect.gen(function* () {
      const response = yield* from(sending(zlib.gzipSync("hello"), "gzip"), { method: "HEAD" })
      expect([response.status, response.body.length]).toEqual([200, 0])
    })
  )

  it.live("is refused for its length before it has arrived, and a length without a body is no body", () =>
    Effect.gen(function* () {
      const announced =
        (status: number): Http.RequestListener =>
        (_, response) => {
          response.writeHead(status, { "content-length": "1001" })
          response.flushHeaders()
        }
      const error = yield* Effect.flip(from(announced(200), { maxBytes: 1_000, timeout: "5 seconds" }))
      expect(error.reason).toBe("TooLarge")
      const head = yield* from(announced(200), { method: "HEAD", maxBytes: 1_000, timeout: "5 seconds" })
      const unchanged = yield* from(announced(304), { maxBytes: 1_000, timeout: "5 seconds" })
      expect([head.status, head.body.length, unchanged.status, unchanged.body.length]).toEqual([
        200, 0, 304, 0
      ])
    })
  )

  it.live("that never ends is cut off at the limit", () =>
    Effect.gen(function* () {
      const closed = yield* Deferred.make<void>()
      const error = yield* Effect.gen(function* () {
        const { port } = yield* serve((_, response) => {
          response.on("close", () => Deferred.unsafeDone(closed, Effect.void))
          const more = () => {
            while (!response.destroyed && response.write(bytes(65_536)));
          }
          response.on("drain", more)
          more()
        })
        const failed = yield* failure({ url: `http://127.0.0.1:${port}/`, maxBytes: 1_000_000 })
        yield* Deferred.await(closed)
        return failed
      }).pipe(Effect.scoped, Effect.provide(http("127.0.0.1")))
      expect(error.reason).toBe("TooLarge")
    })
  )

  it.live("that stops before its end is an error", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(
        from((_, response) => {
          response.writeHead(200, { "content-length": "100" })
          response.write("half", () => void response.destroy())
        })
      )
      expect(error.reason).toBe("Unreachable")
    })
  )

  it.live("of a host that does not accept connections is an error which says so", () =>
    Effect.gen(function* () {
      const { port } = yield* Effect.scoped(serve(() => undefined))
      const error = yield* failure({ url: `http://127.0.0.1:${port}/` })
      expect([error.reason, error.message]).toEqual([
        "Unreachable",
        `http://127.0.0.1:${port} does not accept connections.`
      ])
    }).pipe(Effect.provide(http("127.0.0.1")))
  )

  it.live("that is not HTTP is an error", () =>
    Effect.gen(function* () {
      const server = Net.createServer((socket) => void socket.end("SSH-2.0-OpenSSH_9.0\r\n"))
      const { port } = yield* listening(server, new Set(), 0, "127.0.0.1")
      expect((yield* failure({ url: `http://127.0.0.1:${port}/` })).reason).toBe("Unreachable")
    }).pipe(Effect.scoped, Effect.provide(http("127.0.0.1")))
  )
})

describe("the request", () => {
  it.scopedLive("says what the caller wants, but for what the connection itself says", () =>
    Effect.gen(function* () {
      const seen = yield* Deferred.make<Http.IncomingMessage>()
      const { port } = yield* serve((request, response) => {
        Deferred.unsafeDone(seen, Effect.succeed(request))
        response.end()
      })
      yield* fetch({
        url: `http://127.0.0.1:${port}/a%20b?c=d`,
        method: "post",
        body: new TextEncoder().encode("héllo"),
        headers: { Host: "other.example", "Transfer-Encoding": "chunked", Connection: "x-a", "X-A": "1" }
      }).pipe(Effect.provide(http("127.0.0.1")))
      const { headers, method, url } = yield* Deferred.await(seen)
      expect([method, url, headers.host, headers["x-a"], headers["content-length"]]).toEqual([
        "POST",
        "/a%20b?c=d",
        `127.0.0.1:${port}`,
        "1",
        "6"
      ])
      expect(headers["transfer-encoding"]).toBeUndefined()
      expect(headers["accept-encoding"]).toBe("gzip, deflate, br")
    })
  )

  it.live.each([
    { method: "CONNECT" },
    { method: "TRACE" },
    { method: "GET\r\nX: canary" },
    { headers: { "x-a": "canary\r\nx-b: 1" } },
    { headers: { "x-a": "canary\u0100" } },
    { headers: { "x a": "canary" } },
    { headers: { "": "canary" } }
  ])("%j is refused before anything is sent", (request) =>
    Effect.gen(function* () {
      const error = yield* failure({ url: "http://127.0.0.1:1/", ...request })
      expect(error.reason).toBe("Refused")
      expect(error.message).not.toContain("canary")
    }).pipe(Effect.provide(http("127.0.0.1")))
  )
})

describe("connections", () => {
  /** The client's ports of six requests, one after another. */
  const portsOf = (request: Omit<OutboundRequest, "url">) =>
    Effect.gen(function* () {
      const { port } = yield* serve(
        (incoming, response) => void response.end(String(incoming.socket.remotePort))
      )
      const responses = yield* Effect.forEach([1, 2, 3, 4, 5, 6], () =>
        fetch({ ...request, url: `http://127.0.0.1:${port}/` })
      )
      return new Set(responses.map(({ body }) => text(body)))
    }).pipe(Effect.scoped, Effect.provide(http("127.0.0.1")))

  it.live("are used again for what can be repeated, and never for what cannot", () =>
    Effect.gen(function* () {
      expect((yield* portsOf({})).size).toBeLessThan(6)
      expect((yield* portsOf({ method: "POST", body: "x" })).size).toBe(6)
    })
  )

  it.scopedLive("that close under a GET are replaced; a POST is never sent twice", () =>
    Effect.gen(function* () {
      const served = new Map<string, number>()
      const used = new WeakSet<Net.Socket>()
      const { port } = yield* serve((request, response) => {
        const method = request.method ?? ""
        served.set(method, (served.get(method) ?? 0) + 1)
        if (method === "POST" || used.has(request.socket)) return void request.socket.destroy()
        used.add(request.socket)
        response.end("answer")
      })
      const url = `http://127.0.0.1:${port}/`
      yield* Effect.gen(function* () {
        for (const _ of [1, 2, 3, 4, 5, 6]) expect(text((yield* fetch({ url })).body)).toBe("answer")
        expect(served.get("GET")).toBeGreaterThan(6)
        expect((yield* failure({ url, method: "POST", body: "x" })).reason).toBe("Unreachable")
        expect(served.get("POST")).toBe(1)
      }).pipe(Effect.provide(http("127.0.0.1")))
    })
  )

  it.scopedLive("close with the layer", () =>
    Effect.gen(function* () {
      const closed = yield* Deferred.make<void>()
      const { port } = yield* serve((request, response) => {
        request.socket.on("close", () => Deferred.unsafeDone(closed, Effect.void))
        response.end()
      })
      yield* fetch({ url: `http://127.0.0.1:${port}/` }).pipe(Effect.provide(http("127.0.0.1")))
      yield* Deferred.await(closed)
    })
  )

  const silent = (answer: (response: Http.ServerResponse) => void) =>
    Effect.gen(function* () {
      const arrived = yield* Queue.unbounded<void>()
      const closed = yield* Deferred.make<void>()
      const { port } = yield* serve((request, response) => {
        request.socket.on("close", () => Deferred.unsafeDone(closed, Effect.void))
        answer(response)
        Queue.unsafeOffer(arrived, undefined)
      })
      return { arrived, closed, url: `http://127.0.0.1:${port}/` }
    })

  const behaviours = [
    ["before its answer", () => undefined],
    ["in the middle of its answer", (response: Http.ServerResponse) => void response.write("half")]
  ] as const

  it.live.each(behaviours)("are cut when the request is interrupted %s", ([, answer]) =>
    Effect.gen(function* () {
      for (const request of [{}, { method: "POST", body: "x" }]) {
        const { arrived, closed, url } = yield* silent(answer)
        const running = yield* Effect.fork(fetch({ ...request, url }))
        yield* Queue.take(arrived)
        yield* Fiber.interrupt(running)
        yield* Deferred.await(closed)
      }
    }).pipe(Effect.scoped, Effect.provide(http("127.0.0.1")))
  )

  it.live.each(behaviours)("are cut when the time is up %s", ([, answer]) =>
    Effect.gen(function* () {
      const { closed, url } = yield* silent(answer)
      const error = yield* failure({ url, timeout: "200 millis" })
      expect([error.reason, error.message]).toEqual([
        "TimedOut",
        `${url.slice(0, -1)} did not answer in full within 200ms.`
      ])
      yield* Deferred.await(closed)
    }).pipe(Effect.scoped, Effect.provide(http("127.0.0.1")))
  )

  it.live("the time limit covers the look-up and all redirects together", () =>
    Effect.gen(function* () {
      const { port } = yield* serve(
        (_, response) => void response.writeHead(302, { location: "/again" }).end()
      )
      const url = `http://slow.example:${port}/`
      const slow: Resolver = () => Effect.delay(Effect.succeed(["127.0.0.1"]), "80 millis")
      const error = yield* failure({ url, timeout: "200 millis" }).pipe(
        Effect.provide(http("127.0.0.1", slow))
      )
      expect(error.reason).toBe("TimedOut")
    }).pipe(Effect.scoped)
  )

  it.scopedLive("many at a time each get their own answer", () =>
    Effect.gen(function* () {
      const { port } = yield* serve((request, response) => void response.end(request.url))
      const paths = Chunk.toReadonlyArray(Chunk.range(1, 300)).map((number) => `/${number}`)
      const responses = yield* Effect.forEach(
        paths,
        (path) => fetch({ url: `http://127.0.0.1:${port}${path}` }),
        { concurrency: "unbounded" }
      ).pipe(Effect.provide(http("127.0.0.1")))
      expect(responses.map(({ body }) => text(body))).toEqual(paths)
    })
  )
})
