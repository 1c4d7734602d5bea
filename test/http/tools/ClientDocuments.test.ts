/** An authorization server that reads who the client is at the client's own address. */
import type * as HttpServer from "@effect/platform/HttpServer"
import * as SqlClient from "@effect/sql/SqlClient"
import { expect, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Runtime from "effect/Runtime"
import { TestDatabase } from "../../TestDatabase.ts"
import { appUrl, call } from "../accounts/AccountsServer.ts"
import { returnFromServer, client, toolAnswer, callTool } from "./ConnectionWorld.ts"
import { documentServer, mcpServer } from "./ToolServers.ts"
import { redirectUri, server, start } from "./ToolsWorld.ts"

const live = layer(server.pipe(Layer.provideMerge(TestDatabase)), { excludeTestServices: true })

const documentUrl = `${appUrl}/api/tool-sign-ins/client.json`

const documentWorld = Effect.gen(function* () {
  const made = yield* start
  const runtime = yield* Effect.runtime<HttpServer.HttpServer>()
  const authorization = yield* documentServer(async (clientId) => {
    if (!clientId.startsWith(`${appUrl}/`)) return {}
    const document = await Runtime.runPromise(runtime)(call("GET", clientId.slice(appUrl.length)))
    return JSON.parse(document.text)
  })
  const mcp = yield* mcpServer(authorization)
  const body = { name: "docs", mcp: { url: mcp.url }, auth: { kind: "oauth" } }
  const tool = yield* call("POST", made.tools, { cookie: made.cookie, body })
  const path = `/api/tools/${tool.data.tool.id}`
  /** The sign-in page sends the browser back by itself. */
  const connect = Effect.gen(function* () {
    const begun = yield* call("POST", `${path}/connection`, { cookie: made.cookie })
    expect([begun.status, begun.error]).toEqual([200, undefined])
    const page = new URL(begun.data.url)
    const left = yield* Effect.promise(() => fetch(page, { redirect: "manual" }))
    const returned = new URL(left.headers.get("location") ?? "")
    expect(`${returned.origin}${returned.pathname}`).toBe(redirectUri)
    const shown = yield* returnFromServer(returned.searchParams, made.cookie)
    expect(shown).toBe(`/app/agents/${made.agentId}/tools?connection=made`)
    return page
  })
  return { ...made, authorization, path, connect }
})

live("A client that is known by its metadata document", (it) => {
  it.scoped("can be read by anyone at the address that is its id", () =>
    Effect.gen(function* () {
      const { headers, status, text } = yield* call("GET", "/api/tool-sign-ins/client.json")
      expect([status, headers.get("content-type")]).toEqual([200, "application/json"])
      expect(headers.get("cache-control")).toBe("public, max-age=3600")
      expect(JSON.parse(text)).toEqual({
        client_id: documentUrl,
        client_uri: appUrl,
        client_name: "Spoke",
        redirect_uris: [redirectUri],
        grant_types: ["authorization_code", "refresh_token"],
        response_types: ["code"],
        application_type: "web",
        token_endpoint_auth_method: "none"
      })
    })
  )

  it.scoped("is connected and renewed without a registration", () =>
    Effect.gen(function* () {
      const made = yield* documentWorld
      const page = yield* made.connect
      expect(page.searchParams.get("client_id")).toBe(documentUrl)
      expect(yield* callTool(made)).toBe(toolAnswer)
      const sql = yield* SqlClient.SqlClient
      yield* sql`update tool_connections set expires_at = now() - interval '1 second'`
      expect(yield* callTool(made)).toBe(toolAnswer)
      expect(made.authorization.requests.map(({ client_id, grant_type }) => [client_id, grant_type])).toEqual(
        [
          [documentUrl, "authorization_code"],
          [documentUrl, "refresh_token"]
        ]
      )
      expect(made.authorization.registered).toEqual([])
    })
  )

  it.scoped(
    "is registered if the server does not read documents, and not used if a client is configured",
    () =>
      Effect.gen(function* () {
        const made = yield* documentWorld
        made.authorization.behaviour.isSupported = false
        const page = yield* made.connect
        expect(page.searchParams.get("client_id")).toBe("client-0")
        made.authorization.behaviour.isSupported = true
        const auth = client(made.authorization.issuer)
        yield* call("PATCH", made.path, { cookie: made.cookie, body: { auth } })
        const begun = yield* call("POST", `${made.path}/connection`, { cookie: made.cookie })
        expect(new URL(begun.data.url).searchParams.get("client_id")).toBe(auth.clientId)
        expect(made.authorization.registered.length).toBe(1)
      })
  )
})
