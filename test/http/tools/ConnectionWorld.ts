/** An agent's tool with OAuth: how a person connects it, and how turns use it. */
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { CompleteTurnRequest } from "../../../src/domain/chat/ChatTurn.ts"
import { AgentId, RunId, TenantId } from "../../../src/domain/Ids.ts"
import { ChatTools } from "../../../src/usecases/chat/tools/Tools.ts"
import { call } from "../accounts/AccountsServer.ts"
import { signInAt } from "../accounts/sso/Providers.ts"
import { authorizationServer, registeredClient, mcpServer } from "./ToolServers.ts"
import { redirectUri, start } from "./ToolsWorld.ts"

export const world = (auth: Readonly<Record<string, unknown>> = { kind: "oauth" }) =>
  Effect.gen(function* () {
    const made = yield* start
    const authorization = yield* authorizationServer(redirectUri)
    const mcp = yield* mcpServer(authorization)
    const tool = yield* call("POST", made.tools, {
      cookie: made.cookie,
      body: { name: "docs", mcp: { url: mcp.url }, auth }
    })
    expect([tool.status, tool.error]).toEqual([201, undefined])
    const id: string = tool.data.tool.id
    return { ...made, ...authorization, authorization, mcp, id, path: `/api/tools/${id}` }
  })
type World = Effect.Effect.Success<ReturnType<typeof world>>

export const client = (issuer: string) => ({
  kind: "oauth",
  clientId: registeredClient.clientId,
  issuer,
  secret: registeredClient.secret
})

export const beginConnection = ({ cookie, path }: World) =>
  Effect.map(call("POST", `${path}/connection`, { cookie }), ({ data, error, status }) => {
    expect([status, error]).toEqual([200, undefined])
    return String(data.url)
  })

export const returnFromServer = (query: URLSearchParams, cookie: string) =>
  Effect.map(call("GET", `/api/tool-sign-ins/callback?${query}`, { cookie }), ({ headers, status }) => {
    expect(status).toBe(302)
    return headers.get("location")
  })

/** Connects the tool as a person does. */
export const connect = (world: World) =>
  Effect.gen(function* () {
    const page = yield* beginConnection(world)
    const returned = yield* Effect.promise(() => signInAt(page, "ada"))
    expect(`${returned.origin}${returned.pathname}`).toBe(redirectUri)
    return yield* returnFromServer(returned.searchParams, world.cookie)
  })

export const shownConnection = ({ cookie, tools }: World) =>
  Effect.map(call("GET", tools, { cookie }), ({ data }) => data.tools[0].connection)

const request = Schema.decodeUnknownSync(CompleteTurnRequest)({ message: "Hello?" })

/** The tools of a turn of the agent. */
export const toolsInTurn = ({ agentId, tenantId }: Pick<World, "agentId" | "tenantId">) =>
  Effect.gen(function* () {
    const tools = yield* ChatTools
    const scope = { tenantId: TenantId.make(tenantId), agentId: AgentId.make(agentId) }
    const turn = { scope, runId: RunId.make("run_1"), conversationId: null, endUserId: null }
    return yield* tools.forTurn(scope, request, { hasTools: true, sourceTools: [] }, turn)
  }).pipe(Effect.scoped)

/** The answer of a tool call as the model gets it, or why the tool is not available. */
export const callTool = (world: Pick<World, "agentId" | "tenantId">) =>
  Effect.gen(function* () {
    const { call, declarations, unavailable } = yield* toolsInTurn(world)
    if (declarations.length === 0) return unavailable.map(({ failure }) => failure.code)
    return yield* Effect.merge(
      Effect.mapError(
        call("docs_find", {}, () => Effect.void),
        ({ code }) => [code]
      )
    )
  })

export const toolAnswer = "found with [redacted]"
export const connectionRequired = ["TOOL_CONNECTION_REQUIRED"]
