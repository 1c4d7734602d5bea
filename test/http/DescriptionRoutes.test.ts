import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as HttpApiClient from "@effect/platform/HttpApiClient"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import { layer } from "@effect/vitest"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import { expect } from "vitest"
import { ConversationNotActive, Forbidden, NotFound, Unauthorized } from "../../src/domain/Errors.ts"
import { SourceId } from "../../src/domain/Ids.ts"
import { PublicApi } from "../../src/http/Api.ts"
import { layer as PublicServer, Script } from "./PublicServer.ts"
import { TestServer } from "./TestServer.ts"

layer(PublicServer, { excludeTestServices: true })("the description of the API", (it) => {
  it.effect(
    "lists path parameters, success statuses, permissions and update timestamps, and no schemas",
    () =>
      Effect.gen(function* () {
        const { call } = yield* TestServer
        const { json, status } = yield* call("GET", "/openapi.compact.json")
        expect(status).toBe(200)
        expect(json.openapi).toBe("3.1.0")
        expect(json.paths["/v1/sources/{id}/sync"].post).toEqual({
          summary: expect.any(String),
          parameters: [{ name: "id", in: "path", required: true, schema: { type: "string" } }],
          responses: { 202: { description: "Success" } },
          "x-permission": "ingest",
          "x-updated-at": expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
        })
        expect(Object.keys(json.paths).every((path) => path.startsWith("/v1/"))).toBe(true)
        expect(JSON.stringify(json)).not.toMatch(/"(?:content|requestBody|components)"/)
      })
  )

  it.effect("in full shows the envelope, every declared error, and how to authenticate", () =>
    Effect.gen(function* () {
      const { call } = yield* TestServer
      const { json, text } = yield* call("GET", "/openapi.json")
      expect((yield* call("GET", "/openapi.full.json")).text).toBe(text)
      const chat = json.paths["/v1/chat"].post
      const ok = chat.responses["200"].content["application/json"].schema
      expect(Object.keys(ok.properties)).toEqual(["data", "meta"])
      expect(ok.properties.data).toEqual({ $ref: "#/components/schemas/ChatCompleteData" })
      expect(json.components.schemas.ChatCompleteData.properties.reply).toEqual({ type: "string" })
      expect(Object.keys(chat.responses)).toEqual(
        expect.arrayContaining(["200", "400", "401", "403", "404", "409", "429", "500", "503", "504"])
      )
      expect(chat.responses["409"].description).toContain("CONVERSATION_NOT_ACTIVE")
      expect(JSON.stringify(chat.responses["409"])).toContain("/ConversationNotActiveError")
      expect(text).not.toContain("HttpApiDecodeError")
      expect(Object.keys(json.components.securitySchemes)).toEqual(["apiKey", "bearer"])
      const stream = json.paths["/v1/chat/stream"].post
      expect(Object.keys(stream.responses["200"].content)).toEqual(["text/event-stream"])
    })
  )
})

layer(PublicServer, { excludeTestServices: true })("a client derived from the declarations", (it) => {
  const client = (key: string) =>
    Effect.flatMap(TestServer, ({ url }) =>
      HttpApiClient.make(PublicApi, {
        baseUrl: url,
        transformClient: HttpClient.mapRequest(HttpClientRequest.setHeader("x-api-key", key))
      })
    ).pipe(Effect.provide(FetchHttpClient.layer))

  it.effect("gets the data without the envelope", () =>
    Effect.gen(function* () {
      const { chat, sources } = yield* client("spk_all")
      expect(
        yield* chat.complete({
          headers: {},
          payload: { message: "Hi", persist: true, includeRealtimeToken: true }
        })
      ).toEqual({
        reply: "Hello",
        citations: [],
        media: [],
        runId: null
      })
      const page = yield* sources.list({ urlParams: {} })
      expect(page.sources[0]?.lastSyncedAt).toEqual(DateTime.unsafeMake("2025-01-02T03:04:05.678Z"))
    })
  )

  it.effect("gets the documented errors as typed errors", () =>
    Effect.gen(function* () {
      const { chat, sources } = yield* client("spk_all")
      const missing = yield* Effect.flip(sources.get({ path: { id: SourceId.make("src_9") } }))
      expect(missing).toBeInstanceOf(NotFound)
      expect(missing.message).toBe("There is no such source.")
      const { start } = yield* Script
      yield* Ref.set(start, () => Effect.fail(new ConversationNotActive({ message: "It is closed." })))
      const closed = yield* Effect.flip(
        chat.stream({ headers: {}, payload: { message: "Hi", persist: true } })
      )
      expect(closed).toBeInstanceOf(ConversationNotActive)
      const stranger = yield* client("spk_nobody")
      expect(
        yield* Effect.flip(stranger.retrieve.retrieve({ payload: { query: "Hi", topK: 1, minScore: 0 } }))
      ).toBeInstanceOf(Unauthorized)
      const lesser = yield* client("spk_chat")
      expect(yield* Effect.flip(lesser.sources.list({ urlParams: {} }))).toBeInstanceOf(Forbidden)
    })
  )
})
