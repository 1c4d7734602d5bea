/** An MCP server demands more scopes than the token of a tool has. */
import { expect, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { TestDatabase } from "../../TestDatabase.ts"
import { call } from "../accounts/AccountsServer.ts"
import {
  beginConnection,
  connect,
  toolAnswer,
  toolsInTurn,
  connectionRequired,
  shownConnection,
  callTool,
  world
} from "./ConnectionWorld.ts"
import { machineClient } from "./ToolServers.ts"
import { process, server } from "./ToolsWorld.ts"

const live = layer(server.pipe(Layer.provideMerge(TestDatabase)), { excludeTestServices: true })

const lacking = ["TOOL_SCOPE_REQUIRED"]
const toWrite = (method: string) => (method === "tools/call" ? ["mcp:write"] : [])

const byMachine = (issuer: string) => ({
  kind: "oauth",
  grant: "client_credentials",
  clientId: machineClient.clientId,
  issuer,
  secret: machineClient.secret
})

live("Scopes that an MCP server demands in addition", (it) => {
  it.scoped("are shown, and requested with the granted ones when a person connects the tool again", () =>
    Effect.gen(function* () {
      const made = yield* world()
      yield* connect(made)
      expect(yield* shownConnection(made)).toMatchObject({ state: "connected", missingScopes: [] })
      made.mcp.behaviour.requiredScopes = toWrite
      const turn = yield* toolsInTurn(made)
      const ask = turn.call("docs_find", {}, () => Effect.void)
      const before = made.mcp.tokens.length
      const failure = yield* Effect.flip(ask)
      expect(failure).toEqual({
        code: "TOOL_SCOPE_REQUIRED",
        message:
          "TOOL_SCOPE_REQUIRED: the MCP server demands more scopes, so an admin has to connect the tool again: mcp:write"
      })
      expect(made.mcp.tokens.length - before).toBe(1)
      expect(made.tokenRequests).toEqual(["/token"])
      expect(yield* shownConnection(made)).toMatchObject({
        state: "insufficient",
        missingScopes: ["mcp:write"]
      })
      made.mcp.behaviour.requiredScopes = () => []
      expect(yield* callTool(made)).toBe(toolAnswer)
      expect(yield* shownConnection(made)).toMatchObject({ state: "insufficient" })

      made.mcp.behaviour.requiredScopes = toWrite
      const page = new URL(yield* beginConnection(made))
      const requested = page.searchParams.get("scope")?.split(" ") ?? []
      expect(requested.toSorted()).toEqual(["mcp:tools", "mcp:write", "offline_access"])
      yield* connect(made)
      expect(yield* callTool(made)).toBe(toolAnswer)
      expect(yield* shownConnection(made)).toMatchObject({ state: "connected", missingScopes: [] })
      expect(made.scopesOf(made.mcp.tokens.at(-1) ?? "")).toEqual(["mcp:tools", "mcp:write"])
    })
  )

  it.scoped("that no server names, or that belong to another definition of the tool, change nothing", () =>
    Effect.gen(function* () {
      const made = yield* world()
      yield* connect(made)
      made.mcp.behaviour.requiredScopes = (method) => (method === "tools/call" ? [""] : [])
      expect(yield* callTool(made)).toEqual(lacking)
      expect(yield* shownConnection(made)).toMatchObject({ state: "connected" })
      made.mcp.behaviour.requiredScopes = toWrite
      expect(yield* callTool(made)).toEqual(lacking)
      const body = { auth: { kind: "oauth", scopes: ["mcp:tools"] } }
      yield* call("PATCH", made.path, { cookie: made.cookie, body })
      expect(yield* callTool(made)).toEqual(connectionRequired)
      const page = new URL(yield* beginConnection(made))
      expect(page.searchParams.get("scope")).toBe("mcp:tools offline_access")
    })
  )

  it.scoped("that already the list of tools requires disable the tool, not the turn", () =>
    Effect.gen(function* () {
      const made = yield* world()
      yield* connect(made)
      made.mcp.behaviour.requiredScopes = () => ["mcp:write"]
      const { declarations, unavailable } = yield* toolsInTurn(made)
      expect(declarations).toEqual([])
      expect(unavailable.map(({ failure }) => failure.code)).toEqual(lacking)
    })
  )

  it.scoped("are requested once by a machine client, for all calls and processes, and stored", () =>
    Effect.gen(function* () {
      const made = yield* world()
      yield* call("PATCH", made.path, { cookie: made.cookie, body: { auth: byMachine(made.issuer) } })
      expect(yield* callTool(made)).toBe(toolAnswer)
      made.mcp.behaviour.requiredScopes = toWrite
      made.behaviour.delay = 200
      const all = yield* Effect.all(
        [callTool(made), callTool(made), Effect.provide(callTool(made), process())],
        {
          concurrency: "unbounded"
        }
      )
      expect(all).toEqual([toolAnswer, toolAnswer, toolAnswer])
      expect(made.tokenRequests.length).toBe(2)
      expect(made.scopesOf(made.mcp.tokens.at(-1) ?? "")).toEqual(["mcp:tools", "mcp:write"])
      made.mcp.behaviour.refuses = (
        (first) => (token: string) =>
          token === first
      )(made.mcp.tokens.at(-1))
      expect(yield* callTool(made)).toBe(toolAnswer)
      expect(made.scopesOf(made.mcp.tokens.at(-1) ?? "")).toEqual(["mcp:tools", "mcp:write"])
      expect(yield* shownConnection(made)).toMatchObject({ state: "connected" })
    })
  )

  it.scoped(
    "that a machine client is not granted are requested once, and the tool's other calls still work",
    () =>
      Effect.gen(function* () {
        const made = yield* world()
        made.behaviour.scopes = "mcp:tools"
        yield* call("PATCH", made.path, { cookie: made.cookie, body: { auth: byMachine(made.issuer) } })
        expect(yield* callTool(made)).toBe(toolAnswer)
        made.mcp.behaviour.requiredScopes = toWrite
        expect(yield* callTool(made)).toEqual(lacking)
        const asked = made.tokenRequests.length
        expect(asked).toBe(2)
        for (let round = 0; round < 3; round++) expect(yield* callTool(made)).toEqual(lacking)
        expect(made.tokenRequests.length).toBe(asked)
        made.behaviour.error = "invalid_scope"
        made.mcp.behaviour.requiredScopes = (method) => (method === "tools/call" ? ["mcp:other"] : [])
        for (let round = 0; round < 3; round++) expect(yield* callTool(made)).toEqual(lacking)
        expect(made.tokenRequests.length).toBe(asked + 1)
        made.behaviour.error = null
        expect(yield* shownConnection(made)).toMatchObject({
          state: "insufficient",
          missingScopes: ["mcp:write", "mcp:other"]
        })
        made.mcp.behaviour.requiredScopes = () => []
        expect(yield* callTool(made)).toBe(toolAnswer)
        // Granted there meanwhile, and connected again by hand.
        made.behaviour.scopes = "mcp:tools mcp:write"
        made.mcp.behaviour.requiredScopes = toWrite
        expect((yield* call("POST", `${made.path}/connection`, { cookie: made.cookie })).status).toBe(200)
        expect(yield* callTool(made)).toBe(toolAnswer)
        expect(yield* shownConnection(made)).toMatchObject({ state: "connected", missingScopes: [] })
      })
  )

  it.scoped("are not requested by a machine client with fixed scopes", () =>
    Effect.gen(function* () {
      const made = yield* world()
      const auth = { ...byMachine(made.issuer), scopes: ["mcp:tools"] }
      yield* call("PATCH", made.path, { cookie: made.cookie, body: { auth } })
      made.mcp.behaviour.requiredScopes = toWrite
      expect(yield* callTool(made)).toEqual(lacking)
      expect(made.tokenRequests.length).toBe(1)
      expect(yield* shownConnection(made)).toMatchObject({ state: "insufficient" })
    })
  )

  it.scoped("without end fail each call, and the number of requests is limited", () =>
    Effect.gen(function* () {
      const made = yield* world()
      yield* call("PATCH", made.path, { cookie: made.cookie, body: { auth: byMachine(made.issuer) } })
      let next = 0
      const others = (method: string) =>
        method === "tools/call" ? Array.from({ length: 20 }, () => `mcp:${next++}`) : []
      made.behaviour.scopes = `mcp:tools ${Array.from({ length: 300 }, (_, place) => `mcp:${place}`).join(" ")}`
      made.mcp.behaviour.requiredScopes = others
      const requests: Array<number> = []
      for (let round = 0; round < 5; round++) {
        expect(yield* callTool(made)).toEqual(lacking)
        requests.push(made.tokenRequests.length)
      }
      expect(requests).toEqual([3, 5, 5, 5, 5])

      const other = yield* world()
      yield* call("PATCH", other.path, { cookie: other.cookie, body: { auth: byMachine(other.issuer) } })
      expect(yield* callTool(other)).toBe(toolAnswer)
      other.behaviour.error = "invalid_scope"
      other.mcp.behaviour.requiredScopes = others
      for (let round = 0; round < 8; round++) expect(yield* callTool(other)).toEqual(lacking)
      expect(other.tokenRequests.length).toBe(6)
    })
  )
})
