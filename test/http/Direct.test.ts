import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import * as Stream from "effect/Stream"
import { TurnFailed } from "../../src/domain/Errors.ts"
import { as, layerTelling, layerWithoutLane, Script, turn } from "./PublicServer.ts"
import { type Answer, type Options, TestServer } from "./TestServer.ts"

const message = { message: "Hello" }
const utf8 = new TextEncoder()

/** What may be sent to the routes in the lane, and what may not. */
const requests: ReadonlyArray<readonly [what: string, path: string, options: Options]> = [
  ["a turn", "/v1/chat", { headers: as("spk_chat"), body: message }],
  ["a turn with everything", "/v1/chat", { headers: as("spk_all"), body: { ...message, persist: false } }],
  ["a stream", "/v1/chat/stream", { headers: as("spk_chat"), body: message }],
  ["a search", "/v1/retrieve", { headers: as("spk_retrieve"), body: { query: "fact", topK: 3 } }],
  [
    "a bearer token",
    "/v1/retrieve",
    { headers: { authorization: "Bearer spk_all" }, body: { query: "fact" } }
  ],
  [
    "a request id",
    "/v1/retrieve",
    { headers: { ...as("spk_all"), "x-request-id": "mine.1" }, body: { query: "a" } }
  ],
  ["a malformed request id", "/v1/retrieve", { headers: { ...as("spk_all"), "x-request-id": "no good" } }],
  ["no key", "/v1/chat", { body: message }],
  ["an unknown key", "/v1/chat", { headers: as("spk_nobody"), body: message }],
  ["a key without the permission", "/v1/chat", { headers: as("spk_retrieve"), body: message }],
  ["a key of an organisation", "/v1/retrieve", { headers: as("spk_org"), body: { query: "fact" } }],
  ["a key without its agent", "/v1/retrieve", { headers: as("spk_lost"), body: { query: "fact" } }],
  ["a plan without the API", "/v1/retrieve", { headers: as("spk_plan"), body: { query: "fact" } }],
  ["a foreign origin", "/v1/retrieve", { headers: { ...as("spk_origin"), origin: "https://c.test" } }],
  ["no body", "/v1/chat", { headers: as("spk_chat") }],
  ["no JSON", "/v1/chat", { headers: { ...as("spk_chat"), "content-type": "application/json" }, body: "{" }],
  [
    "an array",
    "/v1/chat",
    { headers: { ...as("spk_chat"), "content-type": "application/json" }, body: "[]" }
  ],
  [
    "a charset",
    "/v1/retrieve",
    {
      headers: { ...as("spk_all"), "content-type": "Application/JSON; charset=utf-8" },
      body: '{"query":"fact"}'
    }
  ],
  ["a text", "/v1/chat", { headers: { ...as("spk_chat"), "content-type": "text/plain" }, body: "Hello" }],
  [
    "a form",
    "/v1/chat",
    { headers: { ...as("spk_chat"), "content-type": "application/x-www-form-urlencoded" }, body: "a=b" }
  ],
  ["wrong fields", "/v1/chat/stream", { headers: as("spk_chat"), body: { message: "", persist: "yes" } }],
  ["nesting", "/v1/chat", { headers: as("spk_chat"), body: JSON.parse("[".repeat(300) + "]".repeat(300)) }],
  [
    "too large a body",
    "/v1/chat",
    {
      headers: { ...as("spk_chat"), "content-type": "application/json" },
      body: utf8.encode(" ".repeat(1_048_577))
    }
  ],
  ["a defect of ours", "/v1/retrieve", { headers: as("spk_all"), body: { query: "broken" } }],
  ["a query", "/v1/retrieve?topK=3", { headers: as("spk_all"), body: { query: "fact" } }],
  ["a slash at the end", "/v1/retrieve/", { headers: as("spk_all"), body: { query: "fact" } }],
  ["the first of a limited key", "/v1/chat", { headers: as("spk_limited_chat"), body: message }],
  ["the second of a limited key", "/v1/chat", { headers: as("spk_limited_chat"), body: message }],
  [
    "a preflight's likeness",
    "/v1/chat",
    { headers: { "access-control-request-method": "POST" }, body: message }
  ]
]

const timed = new Set(["ratelimit-reset", "retry-after"])

/** All of an answer but what is never alike twice. */
const comparable = ({ headers, status, text }: Answer) => {
  const own = /req_[a-z0-9]+/giu
  const seconds = /(?<=retryAfterSeconds":)\d+/u
  return {
    status,
    text: text.replace(own, "req").replace(seconds, "0"),
    headers: [...headers]
      .filter(([name]) => !["date", "transfer-encoding", "keep-alive", "connection"].includes(name))
      .map(([name, value]) => `${name}: ${timed.has(name) ? "soon" : value.replace(own, "req")}`)
      .sort()
  }
}

const parts = Stream.make(
  { _tag: "TextDelta", delta: "Hel" } as const,
  { _tag: "TextDelta", delta: "lo" } as const
)

const answers = (server: typeof layerWithoutLane) =>
  Effect.gen(function* () {
    const { call } = yield* TestServer
    const { start } = yield* Script
    yield* Ref.set(start, () =>
      Effect.succeed(turn(Stream.concat(parts, Stream.fail(new TurnFailed({ message: "Over." })))))
    )
    return yield* Effect.forEach(requests, ([, path, options]) =>
      Effect.map(call("POST", path, options), comparable)
    )
  }).pipe(Effect.provide(Layer.fresh(server)))

describe("The lane beside the framework", () => {
  it.live("answers whatever is sent as the framework does, to the last header", () =>
    Effect.gen(function* () {
      const taken: Array<boolean> = []
      const lane = yield* answers(layerTelling(taken))
      const framework = yield* answers(layerWithoutLane)
      const named = (all: typeof lane) => requests.map(([what], place) => [what, all[place]] as const)
      expect(named(lane)).toEqual(named(framework))
      const left = requests.filter((_, place) => taken[place] !== true).map(([what]) => what)
      expect(left).toEqual(["a text", "a form", "a query", "a slash at the end"])
      expect(taken).toHaveLength(requests.length)
      expect([...new Set(lane.map(({ status }) => status))].sort()).toEqual([
        200, 400, 401, 403, 413, 429, 500
      ])
    })
  )
})
