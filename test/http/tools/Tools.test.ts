import * as SqlClient from "@effect/sql/SqlClient"
import { expect, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { TestDatabase } from "../../TestDatabase.ts"
import { call, signedIn } from "../accounts/AccountsServer.ts"
import { expectVersioned } from "../Versions.ts"
import { server, start } from "./ToolsWorld.ts"

const secret = "tool-secret-canary-8d1f"
const order = {
  name: "order",
  description: "Looks an order up.",
  parameters: { type: "object", properties: { id: { type: "string" } }, required: ["id"] },
  http: { method: "GET", url: "https://shop.example/orders/{id}" },
  bindings: [{ from: "/account", to: "header:X-Account" }],
  auth: { kind: "bearer", secret }
}

layer(server.pipe(Layer.provideMerge(TestDatabase)), { excludeTestServices: true })("Tools", (it) => {
  it.effect(
    "are created, listed, changed and removed; their secret is never returned and stored only sealed",
    () =>
      Effect.gen(function* () {
        const { cookie, tools } = yield* start
        const made = yield* call("POST", tools, { cookie, body: order })
        expect(made.status).toBe(201)
        expect(made.data.tool).toMatchObject({
          id: expect.stringMatching(/^tol_/),
          name: "order",
          auth: { kind: "bearer", hasSecret: true },
          timeout: 15
        })
        const path = `/api/tools/${made.data.tool.id}`
        const patched = yield* call("PATCH", path, {
          cookie,
          body: { description: "Finds orders.", timeout: 5 }
        })
        expect(patched.data.tool).toMatchObject({ description: "Finds orders.", auth: { hasSecret: true } })
        const list = yield* call("GET", tools, { cookie })
        expect(list.data.tools).toEqual([patched.data.tool])
        const sql = yield* SqlClient.SqlClient
        const [row] = yield* sql<{ readonly row: string }>`select to_jsonb(tools)::text as row from tools`
        for (const text of [made.text, patched.text, list.text, row?.row]) expect(text).not.toContain(secret)
        expect((yield* call("DELETE", path, { cookie })).data).toEqual({
          id: made.data.tool.id,
          deleted: true
        })
        expect((yield* call("DELETE", path, { cookie })).status).toBe(404)
      })
  )

  it.effect(
    "are listed page by page, oldest first, with cursors that are valid only for one agent's list",
    () =>
      Effect.gen(function* () {
        const { cookie, tools } = yield* start
        const names = ["a", "b", "c", "d", "e"]
        for (const name of names) yield* call("POST", tools, { cookie, body: { ...order, name } })
        const seen: Array<string> = []
        let query = "?limit=2"
        for (const left of [3, 1, 0]) {
          const { data, status } = yield* call("GET", `${tools}${query}`, { cookie })
          expect(status).toBe(200)
          seen.push(...data.tools.map(({ name }: { name: string }) => name))
          expect(names.length - seen.length).toBe(left)
          expect(data.nextCursor === null).toBe(left === 0)
          if (left > 0) query = `?limit=2&cursor=${encodeURIComponent(data.nextCursor)}`
        }
        expect(seen).toEqual(names)
        const second = yield* call("POST", "/api/agents", { cookie, body: { name: "Second" } })
        const others = `/api/agents/${second.data.agent.id}/tools`
        expect((yield* call("GET", `${others}${query}`, { cookie })).status).toBe(400)
        expect((yield* call("GET", `${tools}?limit=101`, { cookie })).status).toBe(400)
        expect((yield* call("GET", others, { cookie })).data).toEqual({ tools: [], nextCursor: null })
      })
  )

  it.effect("hide fixed values of their requests from members who may not change them", () =>
    Effect.gen(function* () {
      const { cookie, tools } = yield* start
      const canary = "canary-of-a-fixed-header"
      const http = {
        method: "POST",
        url: `https://shop.example/orders/{id}?key=${canary}`,
        headers: { "x-api-key": canary },
        query: { token: canary },
        body: { password: canary }
      }
      yield* call("POST", tools, { cookie, body: { ...order, http } })
      const mcp = { name: "remote", mcp: { url: `https://mcp.example/mcp?key=${canary}` } }
      yield* call("POST", tools, { cookie, body: mcp })
      const sql = yield* SqlClient.SqlClient
      for (const role of ["viewer", "agent"]) {
        yield* sql`update users set role = ${role}`
        const { data, text } = yield* call("GET", tools, { cookie })
        expect(text).not.toContain(canary)
        expect(data.tools[0].http).toEqual({
          method: "POST",
          url: "https://shop.example/orders/{id}",
          headers: { "x-api-key": "***" },
          query: { token: "***" }
        })
        expect(data.tools[1].mcp).toEqual({ url: "https://mcp.example/mcp" })
      }
      yield* sql`update users set role = 'admin'`
      expect((yield* call("GET", tools, { cookie })).data.tools[0].http).toEqual(http)
    })
  )

  it.effect("lose nothing in concurrent changes, and refuse a change of an older version", () =>
    Effect.gen(function* () {
      const { cookie, tools } = yield* start
      const made = yield* call("POST", tools, { cookie, body: order })
      const path = `/api/tools/${made.data.tool.id}`
      yield* Effect.all(
        [{ description: "Finds orders." }, { timeout: 5 }, { bindings: [] }].map((body) =>
          call("PATCH", path, { cookie, body })
        ),
        { concurrency: 3 }
      )
      const list = yield* call("GET", tools, { cookie })
      expect(list.data.tools).toMatchObject([
        { description: "Finds orders.", timeout: 5, bindings: [], version: 4 }
      ])
      yield* expectVersioned(path, "tool", cookie, (place) => ({ description: `Description ${place}` }))
    })
  )

  it.effect("a field that is set to null gets its default, and the target is replaced", () =>
    Effect.gen(function* () {
      const { cookie, tools } = yield* start
      const bindings = [{ from: "/orderId", to: "path:id" }]
      const made = yield* call("POST", tools, { cookie, body: { ...order, bindings, timeout: 5 } })
      const path = `/api/tools/${made.data.tool.id}`
      const patch = (body: object) => call("PATCH", path, { cookie, body })
      const cleared = yield* patch({
        auth: null,
        bindings: null,
        description: null,
        parameters: null,
        timeout: null
      })
      expect(cleared.data.tool).toMatchObject({
        http: order.http,
        auth: { kind: "none", hasSecret: false },
        bindings: [],
        description: "",
        parameters: { type: "object", properties: {} },
        timeout: 15
      })
      expect((yield* patch({ http: null })).status).toBe(400)
      expect((yield* patch({ name: null })).status).toBe(400)
      const mcp = { url: "https://tools.example/mcp" }
      expect((yield* patch({ http: null, mcp })).data.tool).toMatchObject({ mcp })
      expect((yield* patch({ timeout: 7 })).data.tool).toMatchObject({ mcp, timeout: 7 })
    })
  )

  it.effect("a stored secret does not follow the tool to another server, nor to another kind of auth", () =>
    Effect.gen(function* () {
      const { cookie, tools } = yield* start
      const made = yield* call("POST", tools, { cookie, body: order })
      const path = `/api/tools/${made.data.tool.id}`
      const moved = { http: { url: "https://other.example/orders/{id}" } }
      expect((yield* call("PATCH", path, { cookie, body: moved })).status).toBe(400)
      expect((yield* call("PATCH", path, { cookie, body: { auth: { kind: "basic" } } })).status).toBe(400)
      const again = yield* call("PATCH", path, {
        cookie,
        body: { ...moved, auth: { kind: "bearer", secret: "new" } }
      })
      expect(again.data.tool).toMatchObject({ http: moved.http, auth: { hasSecret: true } })
      const off = yield* call("PATCH", path, { cookie, body: { auth: { kind: "none" } } })
      expect(off.data.tool.auth).toEqual({ kind: "none", hasSecret: false })
    })
  )

  it.effect("with contradictory settings are refused, without repeating the input", () =>
    Effect.gen(function* () {
      const { cookie, tools } = yield* start
      const wrong: ReadonlyArray<Record<string, unknown>> = [
        { mcp: { url: "https://mcp.example" } },
        { http: { url: "https://{id}.example/" } },
        { http: { url: "https://ada:pass@shop.example/" } },
        { http: { url: "file:///etc/passwd" } },
        { parameters: { type: "string" } },
        { bindings: [{ from: "account", to: "header:X-Account" }] },
        { bindings: [{ from: "/account", to: "path:nobody" }] },
        { bindings: [{ from: "/account", to: "body:/account" }] },
        { bindings: [{ from: "/account", to: "cookie:a" }] },
        { auth: { kind: "bearer" } },
        { auth: { kind: "header", secret } },
        { timeout: 31 },
        { name: "two words" }
      ]
      for (const change of wrong) {
        const answer = yield* call("POST", tools, { cookie, body: { ...order, ...change } })
        expect([JSON.stringify(change), answer.status, answer.error.code]).toEqual([
          JSON.stringify(change),
          400,
          "VALIDATION_ERROR"
        ])
        expect(answer.text).not.toContain(secret)
      }
      expect((yield* call("POST", tools, { cookie, body: order })).status).toBe(201)
      expect((yield* call("POST", tools, { cookie, body: order })).status).toBe(409)
      const mcp = {
        name: "docs",
        mcp: { url: "https://mcp.example/" },
        auth: { kind: "bearer", slot: "docs" }
      }
      expect((yield* call("POST", tools, { cookie, body: mcp })).status).toBe(201)
    })
  )

  it.effect("can be changed by admins, read by viewers, and not found by other tenants", () =>
    Effect.gen(function* () {
      const { cookie, tools } = yield* start
      const made = yield* call("POST", tools, { cookie, body: order })
      const path = `/api/tools/${made.data.tool.id}`
      const sql = yield* SqlClient.SqlClient
      const stranger = yield* signedIn("eve@example.com")
      expect((yield* call("GET", tools, { cookie: stranger.cookie })).status).toBe(404)
      expect((yield* call("PATCH", path, { cookie: stranger.cookie, body: {} })).status).toBe(404)
      expect((yield* call("DELETE", path, { cookie: stranger.cookie })).status).toBe(404)
      yield* sql`update users set role = 'viewer' where email = 'ada@example.com'`
      expect((yield* call("GET", tools, { cookie })).status).toBe(200)
      expect((yield* call("POST", tools, { cookie, body: order })).status).toBe(403)
      expect((yield* call("PATCH", path, { cookie, body: {} })).status).toBe(403)
      expect((yield* call("DELETE", path, { cookie })).status).toBe(403)
    })
  )
})
