import { describe, expect, it, it as unit, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { TurnPart } from "../../src/domain/chat/ChatTurn.ts"
import { PublicApi } from "../../src/http/Api.ts"
import { publicDescription } from "../../src/http/Description.ts"
import { examples } from "../../src/http/Examples.ts"
import * as Routes from "../../src/http/Routes.ts"
import * as Sse from "../../src/http/Sse.ts"
import { schemaProblems, operations } from "./Conformance.ts"
import { keyHeader, everyPermission, layer as PublicServer } from "./PublicServer.ts"
import { expectError, TestServer } from "./TestServer.ts"
import { allows } from "../../src/domain/accounts/Access.ts"

const routes = Routes.table(PublicApi)

layer(PublicServer, { excludeTestServices: true })("every public route", (it) => {
  it.effect("is listed, is 401 without a key, and 403 for a key that lacks its permission", () =>
    Effect.gen(function* () {
      const { call } = yield* TestServer
      const { json } = yield* call("GET", "/openapi.json")
      for (const { method, path, permission } of routes) {
        const listed = json.paths[path.replace(/:(\w+)/g, "{$1}")]?.[method.toLowerCase()]
        expect(listed?.["x-permission"]).toBe(permission)
        const concrete = path.replace(/:\w+/g, "src_1")
        expectError(yield* call(method, concrete), 401, "UNAUTHORIZED")
        expectError(yield* call(method, concrete, { headers: keyHeader("spk_nobody") }), 401, "UNAUTHORIZED")
        const lesser = everyPermission.find((held) => permission !== undefined && !allows([held], permission))
        const refused = yield* call(method, concrete, { headers: keyHeader(`spk_only_${lesser}`) })
        expectError(refused, 403, "FORBIDDEN")
      }
    })
  )
})

describe("the full description", () => {
  const text = JSON.stringify(publicDescription())
  const document = JSON.parse(text)

  unit("is OpenAPI 3.1: operations have unique ids, path parameters, and answers with descriptions", () => {
    expect(document.openapi).toBe("3.1.0")
    expect(document.info).toMatchObject({ title: "Spoke", version: "1" })
    expect(operations).toHaveLength(routes.length)
    const ids = operations.map(({ operation }) => operation.operationId)
    expect(new Set(ids).size).toBe(ids.length)
    for (const { operation, path } of operations) {
      const named = operation.parameters.filter((each: { in: string }) => each.in === "path")
      expect(named.map((each: { name: string }) => `{${each.name}}`)).toEqual(path.match(/\{\w+\}/g) ?? [])
      expect(named.every((each: { required: boolean }) => each.required)).toBe(true)
      expect(operation.summary).toEqual(expect.any(String))
      expect(operation["x-permission"]).toEqual(expect.any(String))
      expect(Object.keys(operation.responses)).toEqual(expect.arrayContaining(["400", "401", "403", "500"]))
      for (const response of Object.values<{ description: string; headers: object }>(operation.responses)) {
        expect(response.description).toEqual(expect.any(String))
        expect(Object.keys(response.headers)).toContain("x-request-id")
      }
    }
    const referred = [...text.matchAll(/"#\/components\/schemas\/([^"]+)"/g)].map(([, name]) => name)
    expect(new Set(referred)).toEqual(new Set(Object.keys(document.components.schemas)))
    expect(text).not.toContain('"$id":"')
    expect(document.components.schemas.DateTimeUtc).toMatchObject({ type: "string", format: "date-time" })
    expect(schemaProblems({ $ref: "#/components/schemas/DateTimeUtc" }, "2026-01-01T00:00:00Z")).toHaveLength(
      1
    )
    expect(schemaProblems({ $ref: "#/components/schemas/DateTimeUtc" }, "2026-01-01T00:00:00.000Z")).toEqual(
      []
    )
    const create = document.paths["/v1/sources"].post
    expect(create.parameters.map(({ name }: { name: string }) => name)).toContain("idempotency-key")
    expect(document.security).toEqual([{ apiKey: [] }, { bearer: [] }])
  })

  unit("describes each header parameter and each cursor", () => {
    for (const { operation } of operations)
      for (const { description, in: place, name } of operation.parameters)
        if (place === "header" || name === "cursor")
          expect([operation.operationId, name, description]).toEqual([
            operation.operationId,
            name,
            expect.stringMatching(/^[A-Z].*\.$/u)
          ])
  })

  it.effect("shows a stream as it is sent", () =>
    Effect.gen(function* () {
      const { content } = document.paths["/v1/chat/stream"].post.responses["200"]
      const { example } = content["text/event-stream"]
      const { data } = document.paths["/v1/chat"].post.responses["200"].content["application/json"].example
      const { realtimeToken: _, realtimeUrl: __, runId: ___, ...result } = data
      const [citation] = result.citations
      const parts: ReadonlyArray<TurnPart> = [
        { _tag: "StepStart" },
        { _tag: "TextDelta", delta: "You have 30 days [1" },
        { _tag: "Citation", citation },
        { _tag: "TextDelta", delta: "]." },
        { _tag: "StepEnd" },
        { _tag: "Done", result }
      ]
      const bytes = yield* Stream.runCollect(Sse.body(Stream.fromIterable(parts), true))
      expect(example).toBe(Buffer.concat([...bytes]).toString())
    })
  )

  unit("has examples that match their schemas", () => {
    const ids = operations.map(({ operation }) => operation.operationId)
    expect(Object.keys(examples).filter((id) => !ids.includes(id))).toEqual([])
    for (const { operation } of operations) {
      const bodies = [operation.requestBody, ...Object.values(operation.responses)]
      for (const body of bodies) {
        for (const [type, media] of Object.entries<{ example?: unknown; schema: unknown }>(
          body?.content ?? {}
        )) {
          if (media.example === undefined) continue
          if (type === "text/event-stream") expect(media.example).toEqual(expect.stringContaining("[DONE]"))
          if (type !== "application/json") continue
          expect([operation.operationId, schemaProblems(media.schema, media.example)]).toEqual([
            operation.operationId,
            []
          ])
        }
      }
    }
  })
})
