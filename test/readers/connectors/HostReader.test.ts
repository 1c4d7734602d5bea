import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { reader } from "../../../src/client/Reader.ts"
import { hostReader } from "../../../src/readers/connectors/HostReader.ts"
import { layerReaders } from "../Site.ts"
import { json, parameter, serveStub } from "./StubService.ts"

const wiki = reader({
  title: { en: "Wiki", de: "Wiki" },
  description: "Pages.",
  settings: {
    url: { label: "Address", address: true },
    token: { label: "Token", kind: "secret" },
    depth: { label: "Depth", kind: "number", optional: true }
  },
  read: async ({ fetch, position, settings: { depth, token, url } }) => {
    const after = position === null ? "" : String(position)
    const answer = await fetch(`${url}/pages?after=${after}`, {
      headers: { authorization: `Bearer ${token}` }
    })
    const { next }: { readonly next: string | null } = JSON.parse(answer.text())
    if (depth === 9) throw new Error("The depth is too large.")
    return {
      documents: [{ uri: `${url}/${after}`, title: after, content: `Page ${after}` }],
      ...(next === null ? {} : { next })
    }
  }
})

const start = { cursor: null, position: null, known: () => undefined }

const served = serveStub((_, { headers, path }) =>
  headers.authorization === "Bearer good"
    ? json({ next: parameter(path, "after") === "" ? "2" : null })
    : { status: 401, body: "{}" }
)

it("A reader of the host describes its form, and checks settings by it", () =>
  Effect.gen(function* () {
    const made = hostReader("wiki", wiki)
    expect(made.fields.map(({ kind, name, required }) => [name, kind, required])).toEqual([
      ["url", "text", true],
      ["token", "secret", true],
      ["depth", "number", false]
    ])
    expect(made.addresses).toEqual(["url"])
    expect(made.title).toEqual({ en: "Wiki", de: "Wiki" })
    const wrong = yield* Effect.flip(made.checked({ url: "https://wiki.example", depth: "deep", other: 1 }))
    expect(wrong.message).toMatch(/token/u)
    expect(wrong.message).toMatch(/depth/u)
    expect(wrong.message).toMatch(/other/u)
  }).pipe(Effect.runPromise))

it.scopedLive("A reader of the host reads step by step within the rules of the service", () =>
  Effect.gen(function* () {
    const { origin } = yield* served
    const { step } = hostReader("wiki", wiki)
    const settings = { url: origin, token: "good" }
    const first = yield* step(settings, start)
    expect(first.next).toEqual({ more: "2" })
    const second = yield* step(settings, { ...start, position: "2" })
    expect(second).toMatchObject({
      documents: [{ uri: `${origin}/2`, title: "2", content: "Page 2", format: "markdown" }],
      next: { done: null, complete: true }
    })
    const refused = yield* Effect.flip(step({ ...settings, token: "bad" }, start))
    expect(refused).toMatchObject({ code: "unauthorized", retryable: false })
    const threw = yield* Effect.flip(step({ ...settings, depth: 9 }, start))
    expect(threw).toMatchObject({
      code: "reader_failed",
      message: "The depth is too large.",
      retryable: true
    })
    const away = yield* Effect.flip(step({ ...settings, url: "http://10.0.0.1" }, start))
    expect(away.code).toBe("fetch_refused")
  }).pipe(Effect.provide(layerReaders))
)
