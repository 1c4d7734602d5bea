import { layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import { expect } from "vitest"
import { keyHeader, layer as PublicServer, Script } from "../PublicServer.ts"
import { expectData, expectError, TestServer } from "../TestServer.ts"

const call = (method: string, path: string, body?: unknown, key = "spk_all") =>
  Effect.flatMap(TestServer, (server) => server.call(method, path, { headers: keyHeader(key), body }))

const lastAsked = Effect.flatMap(Script, ({ asked }) => Effect.map(Ref.get(asked), (all) => all.at(-1)))

layer(PublicServer, { excludeTestServices: true })("The crawl report and the dry run", (it) => {
  it.effect("GET /v1/sources/:id/crawl pages by cursor, and filters by outcome", () =>
    Effect.gen(function* () {
      const first = expectData(yield* call("GET", "/v1/sources/src_1/crawl?outcome=failed&limit=5"))
      expect(first).toMatchObject({ job: null, entries: [] })
      expect((yield* lastAsked)?.args).toMatchObject([{}, "src_1", { limit: 5, outcome: "failed" }])
      const cursor = encodeURIComponent(first.nextCursor)
      const next = expectData(yield* call("GET", `/v1/sources/src_1/crawl?outcome=failed&cursor=${cursor}`))
      expect(next.nextCursor).toBeNull()
      expect((yield* lastAsked)?.args[2]).toMatchObject({ after: "7:9", limit: 100 })
      const refused = [`cursor=${cursor}`, "outcome=unknown", "limit=0", "limit=501"]
      for (const query of refused)
        expectError(yield* call("GET", `/v1/sources/src_1/crawl?${query}`), 400, "VALIDATION_ERROR")
      expectError(yield* call("GET", "/v1/sources/src_9/crawl"), 404, "NOT_FOUND")
    })
  )

  it.effect("both need the permission ingest", () =>
    Effect.gen(function* () {
      expectError(yield* call("GET", "/v1/sources/src_1/crawl", undefined, "spk_chat"), 403, "FORBIDDEN")
      const body = { type: "URL", config: { url: "https://example.test/" } }
      expectError(yield* call("POST", "/v1/sources/dry-run", body, "spk_chat"), 403, "FORBIDDEN")
    })
  )

  it.effect(
    "POST /v1/sources/dry-run accepts the config of a URL or SITEMAP source, and at most 1,000 URLs",
    () =>
      Effect.gen(function* () {
        const config = { url: "https://example.test/", includePatterns: ["*/docs/*"] }
        const urls = ["https://example.test/docs/a"]
        expectData(yield* call("POST", "/v1/sources/dry-run", { type: "URL", config, urls }))
        expect((yield* lastAsked)?.args[0]).toEqual({ type: "URL", config, urls })
        const bad = [
          { type: "FILE", config: { fileUrl: "https://example.test/a.pdf" } },
          { type: "URL", config: {} },
          { type: "SITEMAP", config: {} },
          { type: "URL", config, urls: [] },
          { type: "URL", config, urls: Array.from({ length: 1_001 }, () => "https://example.test/") },
          {}
        ]
        for (const body of bad)
          expectError(yield* call("POST", "/v1/sources/dry-run", body), 400, "VALIDATION_ERROR")
      })
  )
})
