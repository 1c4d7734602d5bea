/** Tools connect to a real authorization server, and to an MCP server that takes its tokens alone. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import { withCommit } from "../../../src/concurrency/AfterCommit.ts"
import { AgentId, TenantId } from "../../../src/domain/Ids.ts"
import { ToolStore } from "../../../src/store/agents/Tools.ts"
import { ToolTokens } from "../../../src/usecases/agents/ToolTokens.ts"
import { TestDatabase } from "../../TestDatabase.ts"
import { call } from "../accounts/AccountsServer.ts"
import { signInAt } from "../accounts/sso/Providers.ts"
import {
  beginConnection,
  client,
  connect,
  returnFromServer,
  toolAnswer,
  toolsInTurn,
  connectionRequired,
  shownConnection,
  callTool,
  world
} from "./ConnectionWorld.ts"
import { authorizationServer, registeredClient, machineClient } from "./ToolServers.ts"
import { process, redirectUri, server } from "./ToolsWorld.ts"

const live = layer(server.pipe(Layer.provideMerge(TestDatabase)), { excludeTestServices: true })

live("Connections of tools", (it) => {
  it.scoped("a person connects a tool once, and the agent uses it; nothing shows or stores the token", () =>
    Effect.gen(function* () {
      const made = yield* world()
      expect(yield* callTool(made)).toEqual(connectionRequired)
      expect(yield* connect(made)).toBe(`/app/agents/${made.agentId}/tools?connection=made`)
      expect(yield* shownConnection(made)).toMatchObject({ state: "connected", issuer: made.issuer })
      expect(yield* callTool(made)).toBe(toolAnswer)
      const [token = ""] = made.mcp.tokens
      expect(made.audienceOf(token)).toBe(made.mcp.url)
      const sql = yield* SqlClient.SqlClient
      const rows = yield* sql`select to_jsonb(c)::text as row from tool_connections c`
      const list = yield* call("GET", made.tools, { cookie: made.cookie })
      for (const text of [JSON.stringify(rows), list.text]) expect(text).not.toContain(token.slice(-40))
      const { data } = yield* call("GET", "/api/audit", { cookie: made.cookie })
      expect(data.entries.map(({ action }: { readonly action: string }) => action)).toContain("tool.connect")
    })
  )

  it.scoped("a client that was registered by hand is used only at its own authorization server", () =>
    Effect.gen(function* () {
      const made = yield* world()
      const patched = yield* call("PATCH", made.path, {
        cookie: made.cookie,
        body: { auth: client(made.issuer) }
      })
      expect(patched.data.tool.auth).toMatchObject({ clientId: registeredClient.clientId, hasSecret: true })
      expect(new URL(yield* beginConnection(made)).searchParams.get("client_id")).toBe(
        registeredClient.clientId
      )
      yield* connect(made)
      expect(yield* callTool(made)).toBe(toolAnswer)
      const other = yield* authorizationServer(redirectUri)
      made.mcp.behaviour.metadata = (document) => ({ ...document, authorization_servers: [other.issuer] })
      const refused = yield* call("POST", `${made.path}/connection`, { cookie: made.cookie })
      expect([refused.status, refused.error.code]).toEqual([400, "VALIDATION_ERROR"])
      expect(other.tokenRequests).toEqual([])
      const elsewhere = { ...client(other.issuer), secret: undefined }
      const moved = yield* call("PATCH", made.path, { cookie: made.cookie, body: { auth: elsewhere } })
      expect(moved.status).toBe(400)
    })
  )

  it.scoped("a machine client needs no person, and requests a new token when its token expires", () =>
    Effect.gen(function* () {
      const made = yield* world()
      const auth = {
        kind: "oauth",
        grant: "client_credentials",
        clientId: machineClient.clientId,
        issuer: made.issuer,
        secret: machineClient.secret
      }
      yield* call("PATCH", made.path, { cookie: made.cookie, body: { auth } })
      expect(yield* callTool(made)).toBe(toolAnswer)
      expect(yield* callTool(made)).toBe(toolAnswer)
      expect(made.tokenRequests.length).toBe(1)
      made.behaviour.tokenSeconds = 30
      const begun = yield* call("POST", `${made.path}/connection`, { cookie: made.cookie })
      expect([begun.status, begun.data]).toEqual([200, { url: null }])
      expect(yield* callTool(made)).toBe(toolAnswer)
      expect(made.tokenRequests.length).toBe(3)
      const wrong = { ...auth, secret: "another-secret" }
      yield* call("PATCH", made.path, { cookie: made.cookie, body: { auth: wrong } })
      const refused = yield* call("POST", `${made.path}/connection`, { cookie: made.cookie })
      expect(refused.status).toBe(400)
      expect(yield* callTool(made)).toEqual(connectionRequired)
    })
  )

  it.scoped("an expired token is renewed, also during a turn, and the new one is redacted too", () =>
    Effect.gen(function* () {
      const made = yield* world()
      made.behaviour.tokenSeconds = 3
      yield* connect(made)
      made.behaviour.tokenSeconds = 3_600
      const turn = yield* toolsInTurn(made)
      expect(made.tokenRequests.length).toBe(2)
      const ask = turn.call("docs_find", {}, () => Effect.void)
      expect(yield* ask).toBe(toolAnswer)
      const [last] = made.mcp.tokens.slice(-1)
      made.mcp.behaviour.refuses = (token) => token === last
      expect(yield* ask).toBe(toolAnswer)
      expect(made.tokenRequests.length).toBe(3)
      made.mcp.behaviour.refuses = () => true
      expect((yield* Effect.flip(ask)).code).toBe("TOOL_CONNECTION_REQUIRED")
      expect(yield* shownConnection(made)).toMatchObject({ state: "refused" })
      made.mcp.behaviour.refuses = () => false
      expect(yield* callTool(made)).toEqual(connectionRequired)
      yield* connect(made)
      expect(yield* callTool(made)).toBe(toolAnswer)
    })
  )

  it.scoped("two processes use a refresh token once", () =>
    Effect.gen(function* () {
      const made = yield* world()
      yield* connect(made)
      made.behaviour.delay = 300
      const sql = yield* SqlClient.SqlClient
      for (let round = 0; round < 3; round++) {
        yield* sql`update tool_connections set expires_at = now() - interval '1 second'`
        const before = made.tokenRequests.length
        const all = yield* Effect.all(
          [
            callTool(made),
            callTool(made),
            Effect.provide(callTool(made), process()),
            Effect.provide(callTool(made), process())
          ],
          { concurrency: "unbounded" }
        )
        expect(all).toEqual([toolAnswer, toolAnswer, toolAnswer, toolAnswer])
        expect(made.tokenRequests.length - before).toBe(1)
      }
    })
  )

  it.scoped("a refresh outlives the turn that requested it", () =>
    Effect.gen(function* () {
      const made = yield* world()
      yield* connect(made)
      made.behaviour.delay = 500
      const sql = yield* SqlClient.SqlClient
      yield* sql`update tool_connections set expires_at = now() - interval '1 second'`
      yield* Effect.timeoutOption(callTool(made), "200 millis")
      expect(yield* callTool(made)).toBe(toolAnswer)
      expect(made.tokenRequests.filter((path) => path === "/token").length).toBe(2)
    })
  )

  it.scoped("a refresh is stored even if its process stops meanwhile", () =>
    Effect.gen(function* () {
      const made = yield* world()
      yield* connect(made)
      made.behaviour.delay = 500
      const sql = yield* SqlClient.SqlClient
      yield* sql`update tool_connections set expires_at = now() - interval '1 second'`
      yield* Effect.provide(Effect.timeoutOption(callTool(made), "200 millis"), process())
      expect(yield* callTool(made)).toBe(toolAnswer)
      expect(made.tokenRequests.filter((path) => path === "/token").length).toBe(2)
    })
  )

  it.scoped("a refresh is stored even if the database refuses it at first", () =>
    Effect.gen(function* () {
      const made = yield* world()
      yield* connect(made)
      const sql = yield* SqlClient.SqlClient
      yield* sql`update tool_connections set expires_at = now() - interval '1 second'`
      yield* sql`
        create function refuse_tokens() returns trigger language plpgsql as $$ begin raise exception 'not now'; end $$`
      yield* sql`create trigger refuse_tokens before update of tokens on tool_connections
        for each row execute function refuse_tokens()`
      yield* sql`drop function refuse_tokens cascade`.pipe(Effect.delay("1500 millis"), Effect.fork)
      expect(yield* callTool(made)).toBe(toolAnswer)
      expect(yield* callTool(made)).toBe(toolAnswer)
      expect(made.tokenRequests.filter((path) => path === "/token").length).toBe(2)
    })
  )

  it.scoped("a refused refresh requires a person; an unavailable server does not", () =>
    Effect.gen(function* () {
      const made = yield* world()
      yield* connect(made)
      const sql = yield* SqlClient.SqlClient
      yield* sql`update tool_connections set expires_at = now() - interval '1 second'`
      made.behaviour.isDown = true
      expect(yield* callTool(made)).toEqual(["TOOL_FAILED"])
      expect(yield* shownConnection(made)).toMatchObject({ state: "connected" })
      yield* sql`update tool_connections set expires_at = now() + interval '30 seconds'`
      expect(yield* callTool(made)).toBe(toolAnswer)
      made.behaviour.isDown = false
      expect(yield* callTool(made)).toBe(toolAnswer)
      const [row] = yield* sql<{ readonly tokens: string }>`select tokens from tool_connections`
      yield* sql`update tool_connections set expires_at = now() - interval '1 second'`
      expect(yield* callTool(made)).toBe(toolAnswer)
      // Its refresh token was used already: the server ends what was granted.
      yield* sql`
        update tool_connections set tokens = ${row?.tokens ?? ""}, expires_at = now() - interval '1 second'`
      expect(yield* callTool(made)).toEqual(connectionRequired)
      expect(yield* shownConnection(made)).toMatchObject({ state: "refused" })
    })
  )

  it.scoped("disconnecting and deleting revoke the token at the server", () =>
    Effect.gen(function* () {
      const made = yield* world()
      yield* connect(made)
      const gone = yield* call("DELETE", `${made.path}/connection`, { cookie: made.cookie })
      expect(gone.status).toBe(200)
      expect(made.tokenRequests).toContain("/token/revocation")
      expect(yield* shownConnection(made)).toBe(null)
      expect(yield* callTool(made)).toEqual(connectionRequired)
      expect((yield* call("DELETE", `${made.path}/connection`, { cookie: made.cookie })).status).toBe(404)
      yield* connect(made)
      yield* call("DELETE", made.path, { cookie: made.cookie })
      expect(made.tokenRequests.filter((path) => path === "/token/revocation").length).toBe(2)
    })
  )

  it.scoped(
    "a tool or an agent that is removed while a sign-in of it ends leaves no token at the server",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* sql`
        create function store_slowly() returns trigger language plpgsql as $$ begin perform pg_sleep(1); return new; end $$`
        for (const isSlow of ["server", "database"])
          for (const part of ["tool", "agent"]) {
            const made = yield* world()
            const page = yield* beginConnection(made)
            const returned = yield* Effect.promise(() => signInAt(page, "ada"))
            if (isSlow === "server") made.behaviour.delay = 1_000
            else
              yield* sql`
              create trigger store_slowly before insert on tool_connections
              for each row execute function store_slowly()`
            const ending = yield* Effect.fork(returnFromServer(returned.searchParams, made.cookie))
            yield* Effect.sleep("500 millis")
            const path = part === "tool" ? made.path : `/api/agents/${made.agentId}`
            expect((yield* call("DELETE", path, { cookie: made.cookie })).status).toBe(200)
            yield* Fiber.join(ending)
            yield* sql`drop trigger if exists store_slowly on tool_connections`
            expect([isSlow, part, made.tokenRequests]).toEqual([
              isSlow,
              part,
              ["/token", "/token/revocation"]
            ])
          }
        yield* sql`drop function store_slowly`
      })
  )

  it.scoped("a tool that is deleted while its token is renewed leaves none at the server", () =>
    Effect.gen(function* () {
      const made = yield* world()
      yield* connect(made)
      const sql = yield* SqlClient.SqlClient
      yield* sql`update tool_connections set expires_at = now() - interval '1 second'`
      made.behaviour.delay = 1_000
      const calling = yield* Effect.fork(callTool(made))
      yield* Effect.sleep("300 millis")
      yield* sql`delete from tools`
      yield* Fiber.join(calling)
      yield* Effect.sleep("1 second")
      expect(made.tokenRequests).toEqual(["/token", "/token", "/token/revocation"])
    })
  )

  it.scoped("the previous server does not get the secret of another server's client", () =>
    Effect.gen(function* () {
      const made = yield* world()
      yield* connect(made)
      const other = yield* authorizationServer(redirectUri)
      const moved = { cookie: made.cookie, body: { auth: client(other.issuer) } }
      expect((yield* call("PATCH", made.path, moved)).status).toBe(200)
      expect((yield* call("DELETE", made.path, { cookie: made.cookie })).status).toBe(200)
      expect(made.revocationCredentials.length).toBe(1)
      const sent = made.revocationCredentials.map((header) =>
        Buffer.from(header.replace("Basic ", ""), "base64").toString()
      )
      for (const text of sent) expect(text).not.toContain(registeredClient.secret)
      expect(other.tokenRequests).toEqual([])
    })
  )

  it.scoped("a disconnect that is rolled back revokes nothing, and the tool still works", () =>
    Effect.gen(function* () {
      const made = yield* world()
      yield* connect(made)
      const sql = yield* SqlClient.SqlClient
      const tokens = yield* ToolTokens
      const scope = { tenantId: TenantId.make(made.tenantId), agentId: AgentId.make(made.agentId) }
      const [tool] = yield* (yield* ToolStore).list(scope)
      if (tool === undefined) return yield* Effect.dieMessage("There is no tool.")
      const removed = tokens.disconnect(scope, tool)
      yield* Effect.flip(withCommit(sql.withTransaction(Effect.zipRight(removed, Effect.fail("refused")))))
      expect(made.tokenRequests).not.toContain("/token/revocation")
      expect(yield* callTool(made)).toBe(toolAnswer)
      yield* withCommit(sql.withTransaction(removed))
      expect(made.tokenRequests).toContain("/token/revocation")
    }).pipe(Effect.provide(ToolStore.Default))
  )

  it.scoped("deleting an agent revokes the tokens of its tools, and does not depend on the server", () =>
    Effect.gen(function* () {
      const made = yield* world()
      yield* connect(made)
      const body = { name: "more", mcp: { url: made.mcp.url }, auth: client(made.issuer) }
      const other = yield* call("POST", made.tools, { cookie: made.cookie, body })
      yield* connect({ ...made, path: `/api/tools/${other.data.tool.id}` })
      const agent = `/api/agents/${made.agentId}`
      const gone = yield* call("DELETE", agent, { cookie: made.cookie })
      expect(gone.status).toBe(200)
      expect(made.tokenRequests.filter((path) => path === "/token/revocation").length).toBe(2)
      const sql = yield* SqlClient.SqlClient
      expect(yield* sql`select tool_id from tool_connections`).toEqual([])
      const again = yield* call("DELETE", agent, { cookie: made.cookie })
      expect(again.status).toBe(404)

      for (const behaviour of [{ isDown: true }, { delay: 60_000 }]) {
        const next = yield* world()
        yield* connect(next)
        Object.assign(next.behaviour, behaviour)
        const deleted = yield* call("DELETE", `/api/agents/${next.agentId}`, { cookie: next.cookie })
        expect(deleted.status).toBe(200)
      }
    })
  )
})
