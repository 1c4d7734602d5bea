import * as HttpApi from "@effect/platform/HttpApi"
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import { layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { describe, expect, it as test } from "vitest"
import { Api, PublicApi } from "../../../src/http/Api.ts"
import { AgentKeyAuth, OpenReason, RequiredPermission, SessionAuth } from "../../../src/http/Auth.ts"
import * as Routes from "../../../src/http/Routes.ts"
import { layer as PublicServer } from "../PublicServer.ts"
import { expectData, expectError, TestServer } from "../TestServer.ts"

const chat = (headers: Readonly<Record<string, string>>, body: unknown = { message: "Hi" }) =>
  Effect.flatMap(TestServer, ({ call }) => call("POST", "/v1/chat", { headers, body }))

const retrieve = (headers: Readonly<Record<string, string>>) =>
  Effect.flatMap(TestServer, ({ call }) => call("POST", "/v1/retrieve", { headers, body: { query: "Hi" } }))

layer(PublicServer, { excludeTestServices: true })("an API key", (it) => {
  it.effect("comes as x-api-key or as Authorization: Bearer", () =>
    Effect.gen(function* () {
      expectData(yield* chat({ "x-api-key": "spk_chat" }))
      for (const scheme of ["Bearer", "bearer", "BEARER", "Bearer  "]) {
        expectData(yield* chat({ authorization: `${scheme} spk_chat` }))
      }
      // A proxy's own credentials do not hide the key.
      expectData(yield* chat({ authorization: "Basic dTpw", "x-api-key": "spk_chat" }))
    })
  )

  it.effect("that is missing or unknown is 401 for any body", () =>
    Effect.gen(function* () {
      const given: ReadonlyArray<Readonly<Record<string, string>>> = [
        {},
        { "x-api-key": "" },
        { "x-api-key": "spk_nobody" },
        { authorization: "spk_chat" },
        { authorization: "Basic spk_chat" },
        { authorization: "Bearer" },
        { authorization: "Bearer spk_chat spk_chat" },
        { "x-api-key": `spk_${"x".repeat(2_000)}` }
      ]
      for (const headers of given) {
        const answer = yield* chat(headers, { message: 5 })
        expectError(answer, 401, "UNAUTHORIZED")
        expect(answer.text).not.toContain("spk_")
      }
    })
  )

  it.effect("is checked in the order plan, agent, origin, permission, body", () =>
    Effect.gen(function* () {
      const a = { origin: "https://a.test" }
      expectError(yield* chat({ "x-api-key": "spk_plan" }), 403, "PLAN_RESTRICTED")
      expectError(yield* chat({ "x-api-key": "spk_org" }), 403, "FORBIDDEN")
      const blocked = yield* chat({ "x-api-key": "spk_origin" })
      expectError(blocked, 403, "FORBIDDEN")
      expect(blocked.json.error.message).toContain("origin")
      const lacking = yield* chat({ "x-api-key": "spk_origin", ...a }, { message: 5 })
      expectError(lacking, 403, "FORBIDDEN")
      expect(lacking.json.error.message).toContain("permission chat")
      expectError(yield* chat({ "x-api-key": "spk_chat", ...a }, { message: 5 }), 400, "VALIDATION_ERROR")
    })
  )

  it.effect("with a list of origins needs an Origin that is exactly one of them, with either header", () =>
    Effect.gen(function* () {
      for (const key of [{ "x-api-key": "spk_origin" }, { authorization: "Bearer spk_origin" }]) {
        for (const origin of [
          "https://c.test",
          "https://a.test/",
          "https://A.test",
          "http://a.test",
          "null"
        ]) {
          const answer = yield* chat({ ...key, origin })
          expectError(answer, 403, "FORBIDDEN")
          expect(answer.json.error.message).toContain("origin")
          expect(answer.headers.get("access-control-allow-origin")).toBe("*")
        }
      }
    })
  )

  it.effect("without the permission of the route is 403, and with an alias of it is accepted", () =>
    Effect.gen(function* () {
      expectError(yield* retrieve({ "x-api-key": "spk_chat" }), 403, "FORBIDDEN")
      expectData(yield* retrieve({ "x-api-key": "spk_retrieve" }))
      expectError(yield* chat({ "x-api-key": "spk_retrieve" }), 403, "FORBIDDEN")
    })
  )

  it.effect("of an agent without an agent id is 500", () =>
    Effect.gen(function* () {
      expectError(yield* chat({ "x-api-key": "spk_lost" }), 500, "INTERNAL_ERROR")
    })
  )
})

describe("the declarations", () => {
  const permissions = Routes.table(PublicApi).map((route) => [Routes.keyOf(route), route.permission])

  test("give every public route its documented permission", () => {
    expect(Object.fromEntries(permissions)).toMatchObject({
      "POST /v1/chat": "chat",
      "POST /v1/chat/stream": "chat",
      "POST /v1/retrieve": "retrieve",
      "GET /v1/sources": "ingest",
      "POST /v1/sources": "ingest",
      "GET /v1/sources/:id": "ingest",
      "POST /v1/sources/:id/sync": "ingest",
      "GET /v1/ingestion-jobs/:id": "ingest"
    })
    expect(permissions.every(([, permission]) => permission !== undefined)).toBe(true)
  })

  test("of all APIs state who may call each route", () => {
    expect(Routes.table(Api).length).toBeGreaterThan(permissions.length)
  })

  test("are refused if a route does not state who may call it", () => {
    const route = HttpApiEndpoint.get("get", "/v1/forgotten")
    const group = HttpApiGroup.make("forgotten").add(route)
    const table = (made: HttpApiGroup.HttpApiGroup.Any) => () => Routes.table(HttpApi.make("x").add(made))
    expect(table(group)).toThrow("GET /v1/forgotten does not declare who may call it")
    expect(table(group.middleware(AgentKeyAuth))).toThrow("/v1/forgotten")
    expect(table(group.middleware(SessionAuth))).toThrow("/v1/forgotten")
    expect(table(group.annotateEndpoints(RequiredPermission, "chat"))).toThrow("/v1/forgotten")
    expect(table(group.annotateEndpoints(RequiredPermission, "chat").middleware(AgentKeyAuth))).not.toThrow()
    expect(table(group.annotateEndpoints(OpenReason, "It is a test."))).not.toThrow()
  })
})
