/** The dashboard's routes for tools over real HTTP, and the tools of turns. */
import * as HttpApi from "@effect/platform/HttpApi"
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { createServer } from "node:http"
import * as SqlAudit from "../../../src/capabilities/AuditLog/Sql.ts"
import { layerScrypt } from "../../../src/capabilities/Credentials/Scrypt.ts"
import { layerToolOAuth } from "../../../src/capabilities/IdentityProvider/ToolOAuth.ts"
import { layerSql } from "../../../src/capabilities/KeyStore/Sql.ts"
import { layerAddresses } from "../../../src/capabilities/OutboundHttp/Addresses.ts"
import { parseAllowList } from "../../../src/capabilities/OutboundHttp/AddressRules.ts"
import { layerUndici } from "../../../src/capabilities/OutboundHttp/Undici.ts"
import { layer as layerSecretBox } from "../../../src/capabilities/SecretBox/DerivedKeys.ts"
import * as BuiltInTools from "../../../src/capabilities/ToolSources/BuiltIn.ts"
import * as Boundary from "../../../src/http/server/Boundary.ts"
import { AuditApi } from "../../../src/http/hosted/accounts/AuditApi.ts"
import { AuditHandlers } from "../../../src/http/hosted/accounts/AuditHandlers.ts"
import { AgentsApi } from "../../../src/http/hosted/agents/AgentsApi.ts"
import { AgentsHandlers } from "../../../src/http/hosted/agents/AgentsHandlers.ts"
import * as SessionAuth from "../../../src/http/hosted/accounts/SessionAuth.ts"
import * as SessionCookie from "../../../src/http/hosted/accounts/SessionCookie.ts"
import { SessionsApi } from "../../../src/http/hosted/accounts/SessionsApi.ts"
import { SessionsHandlers } from "../../../src/http/hosted/accounts/SessionsHandlers.ts"
import * as ToolAddresses from "../../../src/http/hosted/agents/ToolAddresses.ts"
import { ToolSignInsApi, ToolsApi } from "../../../src/http/hosted/agents/ToolsApi.ts"
import { ToolsHandlers, ToolSignInsHandlers } from "../../../src/http/hosted/agents/ToolsHandlers.ts"
import * as OperatorAuth from "../../../src/http/operator/OperatorAuth.ts"
import { TenantsApi } from "../../../src/http/operator/TenantsApi.ts"
import { TenantsHandlers } from "../../../src/http/operator/TenantsHandlers.ts"
import { AgentStore } from "../../../src/store/agents/Agents.ts"
import { SessionStore } from "../../../src/store/accounts/Sessions.ts"
import { SubscriptionStore } from "../../../src/store/billing/Subscriptions.ts"
import { TenantStore } from "../../../src/store/accounts/Tenants.ts"
import { ToolConnectionStore } from "../../../src/store/agents/ToolConnections.ts"
import { ToolStore } from "../../../src/store/agents/Tools.ts"
import { UserStore } from "../../../src/store/accounts/Users.ts"
import { Accounts } from "../../../src/usecases/accounts/Accounts.ts"
import { Agents } from "../../../src/usecases/agents/Agents.ts"
import { Subscriptions } from "../../../src/usecases/billing/Subscriptions.ts"
import { AuditTrail } from "../../../src/usecases/accounts/AuditTrail.ts"
import { ToolConnections } from "../../../src/usecases/agents/ToolConnections.ts"
import { Tools } from "../../../src/usecases/agents/Tools.ts"
import { ToolRevocations } from "../../../src/usecases/agents/ToolRevocations.ts"
import { ToolTokens } from "../../../src/usecases/agents/ToolTokens.ts"
import { ChatTools } from "../../../src/usecases/chat/tools/Tools.ts"
import { ToolTrials } from "../../../src/usecases/chat/tools/ToolTrials.ts"
import { layerArtifacts } from "../../MemoryArtifacts.ts"
import { reset } from "../../TestDatabase.ts"
import { appUrl, call, operatorToken, signedIn } from "../accounts/AccountsServer.ts"
import { openGate } from "../OpenGate.ts"

const Surface = HttpApi.make("spoke")
  .add(TenantsApi)
  .add(SessionsApi)
  .add(AuditApi)
  .add(AgentsApi)
  .add(ToolsApi)
  .add(ToolSignInsApi)

export const stores = Layer.mergeAll(
  AgentStore.Default,
  SessionStore.Default,
  SubscriptionStore.Default,
  TenantStore.Default,
  ToolConnectionStore.Default,
  ToolStore.Default,
  UserStore.Default
)

/** Only the tests' servers on this machine may be reached. */
const allowed = { allow: Either.getOrThrow(parseAllowList("127.0.0.1/32")) }
const secretBox = layerSecretBox([Redacted.make("a master secret of the tests, long enough")])

/** The services for turns of one process. Each call makes those of another process. */
export const process = () =>
  ToolTrials.Default.pipe(
    Layer.provideMerge(ChatTools.Default),
    Layer.provide(BuiltInTools.layer),
    Layer.provideMerge(ToolTokens.Default),
    Layer.provideMerge(layerToolOAuth),
    Layer.provide([layerUndici(allowed), layerAddresses(allowed)]),
    Layer.provide([stores, secretBox])
  )

/** `HttpServer`, and the services for turns. */
export const server = Layer.suspend(() => {
  const handlers = Layer.mergeAll(
    TenantsHandlers,
    SessionsHandlers,
    AuditHandlers,
    AgentsHandlers,
    ToolsHandlers,
    ToolSignInsHandlers
  ).pipe(
    Layer.provide(SessionAuth.layer(Surface, appUrl).pipe(Layer.provide(openGate))),
    Layer.provide([SessionCookie.layer(appUrl), ToolAddresses.layer(appUrl)]),
    Layer.provide(OperatorAuth.layer(Option.some(Redacted.make(operatorToken))))
  )
  return HttpApiBuilder.serve().pipe(
    Layer.provide(Boundary.layer),
    Layer.provide(Layer.provide(HttpApiBuilder.api(Surface), handlers)),
    Layer.provide(ToolAddresses.layerDocument(appUrl)),
    Layer.provide(
      Layer.mergeAll(
        Accounts.Default,
        Agents.Default.pipe(Layer.provide(ToolRevocations.Default)),
        Subscriptions.Default,
        Tools.Default,
        ToolConnections.Default
      )
    ),
    Layer.provideMerge(process()),
    Layer.provide(layerArtifacts),
    Layer.provide(Layer.provideMerge(AuditTrail.Default, SqlAudit.layerSql)),
    Layer.provide(layerSql),
    Layer.provide(layerScrypt({ log2N: 10, r: 8, p: 1 })),
    Layer.provide(stores),
    Layer.provide(secretBox),
    Layer.provideMerge(NodeHttpServer.layer(() => createServer(), { port: 0, host: "127.0.0.1" }))
  )
})

export const redirectUri = `${appUrl}/api/tool-sign-ins/callback`

/** An agent of a fresh tenant, with the owner's session. */
export const start = Effect.gen(function* () {
  yield* reset
  const { cookie, tenantId } = yield* signedIn("ada@example.com")
  const agent = yield* call("POST", "/api/agents", { cookie, body: { name: "Helper" } })
  const agentId: string = agent.data.agent.id
  return { cookie, tenantId, agentId, tools: `/api/agents/${agentId}/tools` }
})
