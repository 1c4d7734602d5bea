/** The typed HTTP client: derived from the declarations, without the server. */
import * as Path from "node:path"
import { build } from "esbuild"
import * as HttpApi from "@effect/platform/HttpApi"
import { describe, expect, it } from "vitest"
import { makeClient, SpokeError } from "../../src/client.ts"
import { routes } from "../../src/client/Routes.ts"
import { PublicApi } from "../../src/http/PublicApi.ts"

const source = Path.join(import.meta.dirname, "../../src")

const declared = () => {
  const found: Record<string, Record<string, { method: string; path: string }>> = {}
  HttpApi.reflect(PublicApi, {
    onGroup: () => {},
    onEndpoint: ({ endpoint, group }) => {
      ;(found[group.identifier] ??= {})[endpoint.name] = { method: endpoint.method, path: endpoint.path }
    }
  })
  return found
}

const bundle = async (name: string) => {
  const { metafile, outputFiles } = await build({
    entryPoints: [Path.join(source, name)],
    bundle: true,
    minify: true,
    format: "esm",
    platform: "browser",
    metafile: true,
    write: false
  })
  return { bytes: outputFiles[0]?.contents.length ?? 0, inputs: Object.keys(metafile.inputs) }
}

const server =
  /(?:^|\/)src\/(?:store|usecases|app|capabilities|readers|channels)\/|node_modules\/(?:pg|@electric-sql|undici)\//

/** A client of a server that answers with `answer`. */
const against = (answer: (request: Request) => Response | Promise<Response>) =>
  makeClient({
    baseUrl: "http://spoke.test/v1/",
    apiKey: "spk_test",
    fetch: async (input, init) => answer(new Request(input, init))
  })

const rejection = async (promise: Promise<unknown>) => {
  const cause: unknown = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown
  )
  if (!(cause instanceof SpokeError)) throw new Error("It was not rejected with a SpokeError.")
  return cause
}

const all = async <A>(parts: AsyncIterable<A>) => {
  const found: Array<A> = []
  for await (const part of parts) found.push(part)
  return found
}

describe("The HTTP client", () => {
  it("waits for the job that is queued, also where the one before has failed", async () => {
    const states = [
      ["FAILED", "QUEUED"],
      ["PROCESSING", "RUNNING"],
      ["READY", "SUCCEEDED"]
    ]
    const client = against(() => {
      const [status, job] = states.shift() ?? []
      return Response.json({
        data: { id: "src_1", status, error: "Before.", latestJob: { status: job, progress: 0 } }
      })
    })
    expect(await client.sources.ready("src_1", { every: 1 })).toMatchObject({ status: "READY" })
  })

  it("rejects where no job will ever read the source", async () => {
    const client = against(() =>
      Response.json({ data: { id: "src_1", status: "PENDING", error: null, latestJob: null } })
    )
    await expect(client.sources.ready("src_1", { every: 1 })).rejects.toMatchObject({
      code: "SOURCE_NOT_SYNCED"
    })
  })

  it("waits for a source as long as a rate limit says", async () => {
    let asked = 0
    const client = against(() => {
      if (++asked > 1)
        return Response.json({ data: { id: "src_1", status: "READY", error: null, latestJob: null } })
      const error = { code: "RATE_LIMITED", message: "Later.", details: { retryAfterSeconds: 0.05 } }
      return Response.json({ error, meta: { requestId: "req_1" } }, { status: 429 })
    })
    expect(await client.sources.ready("src_1", { every: 1 })).toMatchObject({ status: "READY" })
  })

  it("ends the wait for a source at once when it is aborted while its progress is told", async () => {
    const abort = new AbortController()
    const client = against(() => {
      const latestJob = { status: "RUNNING", progress: 1 }
      return Response.json({ data: { id: "src_1", status: "PROCESSING", error: null, latestJob } })
    })
    const waiting = client.sources.ready("src_1", {
      every: 3_600_000,
      signal: abort.signal,
      onProgress: () => abort.abort(new Error("enough"))
    })
    await expect(waiting).rejects.toThrow("enough")
  })

  it("knows each declared public route by its method and path", () => {
    expect(routes).toEqual(declared())
  })

  it("is a few kilobytes for a browser, with no code of the server", async () => {
    const { bytes, inputs } = await bundle("client.ts")
    expect(inputs.filter((name) => server.test(name))).toEqual([])
    expect(bytes).toBeLessThan(12_000)
  })

  it("has an Effect form for browsers, with no code of the server either", async () => {
    const { inputs } = await bundle("client/Effect.ts")
    expect(inputs.filter((name) => server.test(name))).toEqual([])
  })

  it("sends the key, and fills path and query", async () => {
    const asked: Array<string> = []
    const client = against((request) => {
      asked.push(`${request.method} ${request.url} ${request.headers.get("x-api-key")}`)
      return Response.json({ data: {}, meta: { requestId: "r" } })
    })
    await client.conversations.messages("cnv/1", { limit: 5, cursor: "a b" })
    await client.sources.delete("src_1")
    expect(asked).toEqual([
      "GET http://spoke.test/v1/conversations/cnv%2F1/messages?limit=5&cursor=a+b spk_test",
      "DELETE http://spoke.test/v1/sources/src_1 spk_test"
    ])
  })

  it("rejects with the documented code, its details and the request's id", async () => {
    const client = against(() =>
      Response.json(
        {
          error: { code: "RATE_LIMITED", message: "Later.", details: { a: 1 } },
          meta: { requestId: "req_1" }
        },
        { status: 429 }
      )
    )
    const error = await rejection(client.usage())
    expect(error).toMatchObject({
      code: "RATE_LIMITED",
      message: "Later.",
      details: { a: 1 },
      status: 429,
      requestId: "req_1"
    })
  })

  it("tells what is no answer of Spoke from a server that cannot be reached", async () => {
    expect((await rejection(against(() => new Response("<html>", { status: 502 })).usage())).code).toBe(
      "INVALID_RESPONSE"
    )
    expect((await rejection(against(() => new Response("<html>")).usage())).code).toBe("INVALID_RESPONSE")
    const down = against(() => Promise.reject(new TypeError("fetch failed")))
    expect((await rejection(down.usage())).code).toBe("UNREACHABLE")
  })

  it("rejects with a SpokeError, without its key, where its settings make no request", async () => {
    const wrong = [
      { baseUrl: "127.0.0.1:3000", apiKey: "spk_test" },
      { baseUrl: "http://spoke.test", apiKey: "spk_…" }
    ]
    for (const settings of wrong) {
      const { code, message } = await rejection(makeClient(settings).usage())
      expect([code, message]).toEqual(["INVALID_CONFIG", expect.not.stringContaining("spk_")])
    }
  })

  it("tells an answer of another server, and one that was cut off", async () => {
    const others = [
      () => Response.json({ error: { code: "502", message: "Bad gateway" } }, { status: 502 }),
      () => Response.json({ hello: "world" }),
      () => Response.json(null)
    ]
    for (const other of others)
      expect((await rejection(against(other).usage())).code).toBe("INVALID_RESPONSE")
    const page = against(() => new Response("<html>", { headers: { "content-type": "text/html" } }))
    expect((await rejection(all(page.stream({ message: "Hi" })))).code).toBe("INVALID_RESPONSE")
    const cut = new ReadableStream({
      start: (controller) => controller.enqueue(new TextEncoder().encode('{"data":')),
      pull: (controller) => controller.error(new TypeError("terminated"))
    })
    expect((await rejection(against(() => new Response(cut)).usage())).code).toBe("UNREACHABLE")
  })

  it("asks nothing without an id, whose address would be that of the list", async () => {
    let asked = 0
    const client = against(() => {
      asked++
      return Response.json({ data: { sources: [], nextCursor: null } })
    })
    for (const id of ["", ".", ".."]) {
      expect((await rejection(client.sources.get(id))).code).toBe("VALIDATION_ERROR")
      // It would ask for ever.
      expect((await rejection(client.sources.ready(id, { every: 1 }))).code).toBe("VALIDATION_ERROR")
    }
    expect(asked).toBe(0)
  })

  it("is rejected with the signal's reason when it is aborted, also while an error is read", async () => {
    const reason = new Error("enough")
    const abort = new AbortController()
    const endless = against(({ signal }) => {
      setTimeout(() => abort.abort(reason), 10)
      const start = (controller: ReadableStreamDefaultController) =>
        signal.addEventListener("abort", () => controller.error(signal.reason))
      return new Response(new ReadableStream({ start }), { status: 500 })
    })
    await expect(endless.usage({ signal: abort.signal })).rejects.toBe(reason)
    const client = against(() => Response.json({}))
    await expect(client.usage({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
  })

  it("yields parts however the bytes are cut, and tells a stream that was cut off", async () => {
    const bytes = new TextEncoder().encode(
      ': open\n\ndata: {"type":"start"}\n\ndata: {"type":"text-delta","id":"t","delta":"é"}\n\ndata: [DONE]\n\n'
    )
    const streamed = (end: number) =>
      against(
        () =>
          new Response(
            new ReadableStream({
              start: (controller) => {
                for (const byte of bytes.slice(0, end)) controller.enqueue(Uint8Array.of(byte))
                controller.close()
              }
            })
          )
      ).stream({ message: "Hi" })
    expect((await all(streamed(bytes.length))).map(({ type }) => type)).toEqual(["start", "text-delta"])
    expect((await rejection(all(streamed(bytes.length - 14)))).code).toBe("UNREACHABLE")
  })
})
