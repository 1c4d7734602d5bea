/** Files at the providers, over HTTP. */
import { expect, layer } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Http from "node:http"
import type { AddressInfo } from "node:net"
import * as ProviderHttp from "../../src/capabilities/ModelRuntime/ProviderHttp.ts"
import { GraphFiles, layerHttp } from "../../src/channels/GraphFiles.ts"

const token = Redacted.make("EAAB-canary")
const bytes = Buffer.from("GIF89a and so on")

interface Call {
  readonly method: string
  readonly path: string
  readonly authorization: string | undefined
  readonly type: string
  readonly body: Buffer
}

class Provider extends Context.Tag("test/Provider")<
  Provider,
  { readonly base: string; readonly calls: Array<Call> }
>() {}

const answers = (
  base: string
): Readonly<Record<string, () => readonly [number, string | Buffer, object?]>> => ({
  "/v25.0/1001": () => [
    200,
    JSON.stringify({ url: `${base}/files/1001`, mime_type: "image/gif", file_size: String(bytes.length) })
  ],
  "/v25.0/1002": () => [200, JSON.stringify({ mime_type: "image/gif" })],
  "/v25.0/1003": () => [404, JSON.stringify({ error: { code: 100, message: "No such file EAAB-canary" } })],
  "/v25.0/files/1001": () => [200, bytes],
  "/v25.0/files/moved": () => [302, "", { location: `${base}/files/1001` }],
  "/v25.0/files/expired": () => [404, "URL signature expired"],
  "/v25.0/files/busy": () => [503, "Later"],
  "/v25.0/1067/media": () => [200, JSON.stringify({ id: "2002" })]
})

const provider = Layer.scoped(
  Provider,
  Effect.acquireRelease(
    Effect.promise(async () => {
      const calls: Array<Call> = []
      let base = ""
      const server = Http.createServer((request, response) => {
        const chunks: Array<Buffer> = []
        request.on("data", (chunk: Buffer) => chunks.push(chunk))
        request.on("end", () => {
          calls.push({
            method: request.method ?? "",
            path: request.url ?? "",
            authorization: request.headers.authorization,
            type: request.headers["content-type"] ?? "",
            body: Buffer.concat(chunks)
          })
          const [status, body, headers = {}] = answers(base)[request.url ?? ""]?.() ?? [500, "?"]
          response.writeHead(status, { ...headers }).end(body)
        })
      })
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      base = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v25.0`
      return { base, calls, server }
    }),
    ({ server }) =>
      Effect.sync(() => {
        server.close()
        server.closeAllConnections()
      })
  )
)

const files = Layer.unwrapEffect(
  Effect.map(Provider, ({ base }) => layerHttp(base).pipe(Layer.provide(ProviderHttp.layer)))
).pipe(Layer.provideMerge(provider))

layer(files, { excludeTestServices: true })("A file at a provider", (it) => {
  const read = (path: string, maxBytes = 1_000) =>
    Effect.gen(function* () {
      const { base } = yield* Provider
      return yield* (yield* GraphFiles).read(`${base}/files/${path}`, token, maxBytes)
    })

  it.effect("is found by its id and read where that says, both with the token", () =>
    Effect.gen(function* () {
      const { calls } = yield* Provider
      const graph = yield* GraphFiles
      const { file_size: size, mime_type: type, url } = yield* graph.locate("1001", token)
      expect([type, size]).toEqual(["image/gif", bytes.length])
      const found = yield* graph.read(url, token, 1_000)
      expect(Option.map(found, (one) => Buffer.from(one).toString())).toEqual(Option.some(bytes.toString()))
      expect(calls.map(({ authorization, path }) => [path, authorization])).toEqual([
        ["/v25.0/1001", "Bearer EAAB-canary"],
        ["/v25.0/files/1001", "Bearer EAAB-canary"]
      ])
    })
  )

  it.effect("is refused without repeating what the provider says, or when it is nowhere", () =>
    Effect.gen(function* () {
      const graph = yield* GraphFiles
      const missing = yield* Effect.flip(graph.locate("1003", token))
      expect(missing).toMatchObject({ reason: "Refused", retryable: false })
      expect(JSON.stringify(missing)).not.toContain("canary")
      expect(yield* Effect.flip(graph.locate("1002", token))).toMatchObject({ reason: "Unknown" })
    })
  )

  it.effect("is not read past its limit", () =>
    Effect.gen(function* () {
      expect(Option.isSome(yield* read("1001", bytes.length))).toBe(true)
      expect(yield* Effect.flip(read("1001", bytes.length - 1))).toMatchObject({
        message: "The file is too large.",
        retryable: false
      })
    })
  )

  it.effect("is not followed elsewhere with the token: neither by a redirect nor to another host", () =>
    Effect.gen(function* () {
      const { calls } = yield* Provider
      expect(yield* Effect.flip(read("moved"))).toMatchObject({ retryable: false })
      expect(calls.at(-1)?.path).toBe("/v25.0/files/moved")
      const before = calls.length
      const graph = yield* GraphFiles
      expect(yield* graph.read("https://files.invalid/1001", token, 1_000)).toEqual(Option.none())
      expect(yield* graph.read("no address", token, 1_000)).toEqual(Option.none())
      expect(calls.length).toBe(before)
    })
  )

  it.effect("is given up when its address has expired, and tried again when the provider is busy", () =>
    Effect.gen(function* () {
      expect(yield* Effect.flip(read("expired"))).toMatchObject({ reason: "Refused", retryable: false })
      expect(yield* Effect.flip(read("busy"))).toMatchObject({ reason: "Refused", retryable: true })
    })
  )

  it.effect("is uploaded as a form, whatever its name", () =>
    Effect.gen(function* () {
      const { calls } = yield* Provider
      const file = { field: "file", name: 'a "b"\r\n😀.gif', mimeType: "image/gif", bytes }
      const answer = yield* (yield* GraphFiles).upload("1067/media", token, { type: "image/gif" }, file)
      expect(answer).toEqual({ id: "2002" })
      const { authorization, body, method, type } = calls.at(-1) ?? { body: Buffer.of(), type: "" }
      expect([method, authorization]).toEqual(["POST", "Bearer EAAB-canary"])
      const form = yield* Effect.promise(() =>
        new Response(new Uint8Array(body), { headers: { "content-type": type } }).formData()
      )
      const sent = form.get("file")
      expect(form.get("type")).toBe("image/gif")
      expect(sent instanceof File && [sent.type, sent.size]).toEqual(["image/gif", bytes.length])
    })
  )
})
