import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import * as Stream from "effect/Stream"
import { TurnFailed } from "../../src/domain/Errors.ts"
import { keyHeader, layer, Script, turn } from "./PublicServer.ts"
import { type Options, TestServer } from "./TestServer.ts"

const message = { message: "Hello" }
const utf8 = new TextEncoder()

/** What may be sent to the routes of turns and searches, and the status of the answer. */
const requests: ReadonlyArray<readonly [what: string, status: number, path: string, options: Options]> = [
  ["a turn", 200, "/v1/chat", { headers: keyHeader("spk_chat"), body: message }],
  [
    "a turn with everything",
    200,
    "/v1/chat",
    { headers: keyHeader("spk_all"), body: { ...message, persist: false } }
  ],
  ["a stream", 200, "/v1/chat/stream", { headers: keyHeader("spk_chat"), body: message }],
  ["a search", 200, "/v1/retrieve", { headers: keyHeader("spk_retrieve"), body: { query: "fact", topK: 3 } }],
  [
    "a bearer token",
    200,
    "/v1/retrieve",
    { headers: { authorization: "Bearer spk_all" }, body: { query: "fact" } }
  ],
  [
    "a request id",
    200,
    "/v1/retrieve",
    { headers: { ...keyHeader("spk_all"), "x-request-id": "mine.1" }, body: { query: "a" } }
  ],
  [
    "a malformed request id",
    400,
    "/v1/retrieve",
    { headers: { ...keyHeader("spk_all"), "x-request-id": "no good" } }
  ],
  ["no key", 401, "/v1/chat", { body: message }],
  ["an unknown key", 401, "/v1/chat", { headers: keyHeader("spk_nobody"), body: message }],
  ["a key without the permission", 403, "/v1/chat", { headers: keyHeader("spk_retrieve"), body: message }],
  [
    "a key of an organisation",
    403,
    "/v1/retrieve",
    { headers: keyHeader("spk_org"), body: { query: "fact" } }
  ],
  [
    "a key without its agent",
    500,
    "/v1/retrieve",
    { headers: keyHeader("spk_lost"), body: { query: "fact" } }
  ],
  [
    "a plan without the API",
    403,
    "/v1/retrieve",
    { headers: keyHeader("spk_plan"), body: { query: "fact" } }
  ],
  [
    "a foreign origin",
    403,
    "/v1/retrieve",
    { headers: { ...keyHeader("spk_origin"), origin: "https://c.test" } }
  ],
  ["no body", 400, "/v1/chat", { headers: keyHeader("spk_chat") }],
  [
    "no JSON",
    400,
    "/v1/chat",
    { headers: { ...keyHeader("spk_chat"), "content-type": "application/json" }, body: "{" }
  ],
  [
    "bytes that are not UTF-8",
    400,
    "/v1/retrieve",
    {
      headers: { ...keyHeader("spk_retrieve"), "content-type": "application/json" },
      body: Uint8Array.of(...utf8.encode('{"query":"fact '), 0xff, ...utf8.encode('"}'))
    }
  ],
  [
    "an array",
    400,
    "/v1/chat",
    { headers: { ...keyHeader("spk_chat"), "content-type": "application/json" }, body: "[]" }
  ],
  [
    "a charset",
    200,
    "/v1/retrieve",
    {
      headers: { ...keyHeader("spk_all"), "content-type": "Application/JSON; charset=utf-8" },
      body: '{"query":"fact"}'
    }
  ],
  [
    "a text",
    400,
    "/v1/chat",
    { headers: { ...keyHeader("spk_chat"), "content-type": "text/plain" }, body: "Hello" }
  ],
  [
    "a form",
    400,
    "/v1/chat",
    {
      headers: { ...keyHeader("spk_chat"), "content-type": "application/x-www-form-urlencoded" },
      body: "a=b"
    }
  ],
  [
    "wrong fields",
    400,
    "/v1/chat/stream",
    { headers: keyHeader("spk_chat"), body: { message: "", persist: "yes" } }
  ],
  [
    "nesting",
    400,
    "/v1/chat",
    { headers: keyHeader("spk_chat"), body: JSON.parse("[".repeat(300) + "]".repeat(300)) }
  ],
  [
    "too large a body",
    413,
    "/v1/chat",
    {
      headers: { ...keyHeader("spk_chat"), "content-type": "application/json" },
      body: utf8.encode(" ".repeat(1_048_577))
    }
  ],
  ["a defect of ours", 500, "/v1/retrieve", { headers: keyHeader("spk_all"), body: { query: "broken" } }],
  ["a query", 200, "/v1/retrieve?topK=3", { headers: keyHeader("spk_all"), body: { query: "fact" } }],
  ["a slash at the end", 200, "/v1/retrieve/", { headers: keyHeader("spk_all"), body: { query: "fact" } }],
  ["the first of a limited key", 200, "/v1/chat", { headers: keyHeader("spk_limited_chat"), body: message }],
  ["the second of a limited key", 429, "/v1/chat", { headers: keyHeader("spk_limited_chat"), body: message }],
  [
    "a preflight's likeness",
    401,
    "/v1/chat",
    { headers: { "access-control-request-method": "POST" }, body: message }
  ]
]

const parts = Stream.make(
  { _tag: "TextDelta", delta: "Hel" } as const,
  { _tag: "TextDelta", delta: "lo" } as const
)

it.live("Turns and searches are answered with the documented status for any request", () =>
  Effect.gen(function* () {
    const { call } = yield* TestServer
    const { start } = yield* Script
    yield* Ref.set(start, () =>
      Effect.succeed(turn(Stream.concat(parts, Stream.fail(new TurnFailed({ message: "Over." })))))
    )
    const answers = yield* Effect.forEach(requests, ([what, , path, options]) =>
      Effect.map(call("POST", path, options), ({ status }) => [what, status])
    )
    expect(answers).toEqual(requests.map(([what, status]) => [what, status]))
  }).pipe(Effect.provide(layer))
)
