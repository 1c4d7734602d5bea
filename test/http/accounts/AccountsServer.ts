/** The operator's and the dashboard's routes over real HTTP on a free port, with the worker's database. */
import * as HttpApi from "@effect/platform/HttpApi"
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpServer from "@effect/platform/HttpServer"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { createServer } from "node:http"
import { BlockList } from "node:net"
import { layerTable } from "../../../src/capabilities/JobQueue/Table.ts"
import * as SqlAudit from "../../../src/capabilities/AuditLog/Sql.ts"
import type { Credentials } from "../../../src/capabilities/Credentials.ts"
import { layerScrypt } from "../../../src/capabilities/Credentials/Scrypt.ts"
import { layerOpenIdConnect } from "../../../src/capabilities/IdentityProvider/OpenIdConnect.ts"
import { parseAllowList } from "../../../src/capabilities/OutboundHttp/AddressRules.ts"
import { layerUndici } from "../../../src/capabilities/OutboundHttp/Undici.ts"
import { layerSql } from "../../../src/capabilities/KeyStore/Sql.ts"
import { layer as layerSecretBox } from "../../../src/capabilities/SecretBox/DerivedKeys.ts"
import * as Boundary from "../../../src/http/server/Boundary.ts"
import { TrustedProxies } from "../../../src/http/server/ClientAddress.ts"
import { AgentsApi, ManagedAgentsApi } from "../../../src/http/hosted/agents/AgentsApi.ts"
import { AgentsHandlers, ManagedAgentsHandlers } from "../../../src/http/hosted/agents/AgentsHandlers.ts"
import { AgentVersionsApi } from "../../../src/http/hosted/agents/AgentVersionsApi.ts"
import { AgentVersionsHandlers } from "../../../src/http/hosted/agents/AgentVersionsHandlers.ts"
import { TestCasesApi } from "../../../src/http/hosted/agents/TestCasesApi.ts"
import { TestCasesHandlers } from "../../../src/http/hosted/agents/TestCasesHandlers.ts"
import { ExperimentsApi } from "../../../src/http/hosted/agents/ExperimentsApi.ts"
import { ExperimentsHandlers } from "../../../src/http/hosted/agents/ExperimentsHandlers.ts"
import { AuditApi } from "../../../src/http/hosted/accounts/AuditApi.ts"
import { AuditHandlers } from "../../../src/http/hosted/accounts/AuditHandlers.ts"
import { EndUsersApi } from "../../../src/http/hosted/conversations/EndUsersApi.ts"
import { EndUsersHandlers } from "../../../src/http/hosted/conversations/EndUsersHandlers.ts"
import { BudgetsApi } from "../../../src/http/hosted/billing/BudgetsApi.ts"
import { BudgetsHandlers } from "../../../src/http/hosted/billing/BudgetsHandlers.ts"
import { Budgets } from "../../../src/usecases/billing/Budgets.ts"
import { RetentionApi } from "../../../src/http/hosted/accounts/RetentionApi.ts"
import { RetentionHandlers } from "../../../src/http/hosted/accounts/RetentionHandlers.ts"
import { BudgetStore } from "../../../src/store/billing/Budgets.ts"
import { ExpiredRows } from "../../../src/store/accounts/ExpiredRows.ts"
import { RetentionStore } from "../../../src/store/accounts/Retention.ts"
import { UnusedPassages } from "../../../src/store/chat/UnusedPassages.ts"
import { RetentionLimits } from "../../../src/usecases/accounts/Retention.ts"
import { KeysApi } from "../../../src/http/hosted/accounts/KeysApi.ts"
import { KeysHandlers } from "../../../src/http/hosted/accounts/KeysHandlers.ts"
import * as SessionAuth from "../../../src/http/hosted/accounts/SessionAuth.ts"
import * as SessionCookie from "../../../src/http/hosted/accounts/SessionCookie.ts"
import { SessionsApi } from "../../../src/http/hosted/accounts/SessionsApi.ts"
import { SessionsHandlers } from "../../../src/http/hosted/accounts/SessionsHandlers.ts"
import { MemberSessionsApi, OpenSessionsApi } from "../../../src/http/hosted/accounts/OpenSessionsApi.ts"
import {
  MemberSessionsHandlers,
  OpenSessionsHandlers
} from "../../../src/http/hosted/accounts/OpenSessionsHandlers.ts"
import {
  ScimTokensApi,
  SignOnApi,
  SingleSignOnApi
} from "../../../src/http/hosted/accounts/SingleSignOnApi.ts"
import {
  ScimTokensHandlers,
  SignOnHandlers,
  SingleSignOnHandlers
} from "../../../src/http/hosted/accounts/SingleSignOnHandlers.ts"
import { PasskeySignInApi, PasskeysApi } from "../../../src/http/hosted/accounts/passkeys/PasskeysApi.ts"
import {
  PasskeySignInHandlers,
  PasskeysHandlers
} from "../../../src/http/hosted/accounts/passkeys/PasskeysHandlers.ts"
import * as PasskeyCookie from "../../../src/http/hosted/accounts/passkeys/PasskeyCookie.ts"
import { layerWebAuthn } from "../../../src/capabilities/Credentials/WebAuthn.ts"
import * as SqlDedupe from "../../../src/capabilities/DedupeStore/Sql.ts"
import { PasskeyStore } from "../../../src/store/accounts/Passkeys.ts"
import { Passkeys } from "../../../src/usecases/accounts/Passkeys.ts"
import * as SignOnCookie from "../../../src/http/hosted/accounts/SignOnCookie.ts"
import { TokensApi } from "../../../src/http/hosted/accounts/TokensApi.ts"
import { TokensHandlers } from "../../../src/http/hosted/accounts/TokensHandlers.ts"
import * as ManageAuth from "../../../src/http/manage/ManageAuth.ts"
import { HostedUsageApi } from "../../../src/http/hosted/billing/UsageApi.ts"
import { HostedUsageHandlers } from "../../../src/http/hosted/billing/UsageHandlers.ts"
import { PasswordsApi, UsersApi } from "../../../src/http/hosted/accounts/UsersApi.ts"
import { PasswordsHandlers, UsersHandlers } from "../../../src/http/hosted/accounts/UsersHandlers.ts"
import * as OperatorAuth from "../../../src/http/operator/OperatorAuth.ts"
import { DomainsApi } from "../../../src/http/operator/DomainsApi.ts"
import { DomainsHandlers } from "../../../src/http/operator/DomainsHandlers.ts"
import { RecoveryApi } from "../../../src/http/operator/RecoveryApi.ts"
import { RecoveryHandlers } from "../../../src/http/operator/RecoveryHandlers.ts"
import { QueuesApi } from "../../../src/http/operator/QueuesApi.ts"
import { QueuesHandlers } from "../../../src/http/operator/QueuesHandlers.ts"
import { TenantsApi } from "../../../src/http/operator/TenantsApi.ts"
import { TenantsHandlers } from "../../../src/http/operator/TenantsHandlers.ts"
import { AgentStore } from "../../../src/store/agents/Agents.ts"
import { AgentVersionStore } from "../../../src/store/agents/AgentVersions.ts"
import { ExperimentStore } from "../../../src/store/agents/Experiments.ts"
import { TestCaseStore } from "../../../src/store/agents/TestCases.ts"
import { AccessTokenStore } from "../../../src/store/accounts/AccessTokens.ts"
import { ManageAnswerStore } from "../../../src/store/accounts/ManageAnswers.ts"
import { ApiKeyStore } from "../../../src/store/accounts/ApiKeys.ts"
import { EndUserStore } from "../../../src/store/conversations/EndUsers.ts"
import { SessionStore } from "../../../src/store/accounts/Sessions.ts"
import { ScimStore } from "../../../src/store/accounts/Scim.ts"
import { ScimTokenStore } from "../../../src/store/accounts/ScimTokens.ts"
import { SingleSignOnStore } from "../../../src/store/accounts/SingleSignOn.ts"
import { SubscriptionStore } from "../../../src/store/billing/Subscriptions.ts"
import { TeamStore } from "../../../src/store/accounts/Team.ts"
import { TenantStore } from "../../../src/store/accounts/Tenants.ts"
import { StorageStore } from "../../../src/store/billing/Storage.ts"
import { UsageStore } from "../../../src/store/billing/Usage.ts"
import { UserStore } from "../../../src/store/accounts/Users.ts"
import { AccessTokens } from "../../../src/usecases/accounts/AccessTokens.ts"
import { RepeatedRequests } from "../../../src/usecases/accounts/RepeatedRequests.ts"
import { Accounts } from "../../../src/usecases/accounts/Accounts.ts"
import { AuditTrail } from "../../../src/usecases/accounts/AuditTrail.ts"
import { EndUsers } from "../../../src/usecases/conversations/EndUsers.ts"
import { Agents } from "../../../src/usecases/agents/Agents.ts"
import { AgentVersions } from "../../../src/usecases/agents/AgentVersions.ts"
import { Experiments } from "../../../src/usecases/agents/Experiments.ts"
import { PublishGate } from "../../../src/usecases/agents/PublishGate.ts"
import { TestCases } from "../../../src/usecases/agents/TestCases.ts"
import { Keys } from "../../../src/usecases/accounts/Keys.ts"
import { Queues } from "../../../src/usecases/operations/Queues.ts"
import { Subscriptions } from "../../../src/usecases/billing/Subscriptions.ts"
import { Scim } from "../../../src/usecases/accounts/Scim.ts"
import { ScimAccess } from "../../../src/usecases/accounts/ScimAccess.ts"
import * as ScimRoute from "../../../src/http/scim/ScimRoute.ts"
import * as LimiterMemory from "../../../src/capabilities/RateLimiter/Memory.ts"
import { SignOn } from "../../../src/usecases/accounts/SignOn.ts"
import { SingleSignOn } from "../../../src/usecases/accounts/SingleSignOn.ts"
import { OpenSessions } from "../../../src/usecases/accounts/OpenSessions.ts"
import { Team } from "../../../src/usecases/accounts/Team.ts"
import { UsageReport } from "../../../src/usecases/billing/UsageReport.ts"
import { layerArtifacts } from "../../MemoryArtifacts.ts"
import { layerNoRevocations } from "../../NoRevocations.ts"
import { openGate } from "../OpenGate.ts"

export const operatorToken = "operator-token-of-the-tests"
export const appUrl = "https://app.example"

const Surface = HttpApi.make("spoke")
  .add(TenantsApi)
  .add(DomainsApi)
  .add(RecoveryApi)
  .add(QueuesApi)
  .add(SessionsApi)
  .add(OpenSessionsApi)
  .add(MemberSessionsApi)
  .add(SignOnApi)
  .add(SingleSignOnApi)
  .add(ScimTokensApi)
  .add(PasskeysApi)
  .add(PasskeySignInApi)
  .add(AgentsApi)
  .add(AgentVersionsApi)
  .add(TestCasesApi)
  .add(ExperimentsApi)
  .add(ManagedAgentsApi)
  .add(TokensApi)
  .add(RetentionApi)
  .add(BudgetsApi)
  .add(KeysApi)
  .add(AuditApi)
  .add(EndUsersApi)
  .add(HostedUsageApi)
  .add(UsersApi)
  .add(PasswordsApi)

const Stores = Layer.mergeAll(
  AccessTokenStore.Default,
  AgentStore.Default,
  AgentVersionStore.Default,
  ApiKeyStore.Default,
  EndUserStore.Default,
  ManageAnswerStore.Default,
  ExperimentStore.Default,
  BudgetStore.Default,
  ExpiredRows.Default,
  RetentionStore.Default,
  UnusedPassages.Default,
  TeamStore.Default,
  StorageStore.Default,
  UsageStore.Default,
  SessionStore.Default,
  PasskeyStore.Default,
  ScimStore.Default,
  ScimTokenStore.Default,
  SingleSignOnStore.Default,
  SubscriptionStore.Default,
  TenantStore.Default,
  TestCaseStore.Default,
  UserStore.Default
)

const UseCases = Layer.mergeAll(
  AccessTokens.Default,
  RepeatedRequests.Default,
  Accounts.Default,
  Agents.Default,
  AgentVersions.Default,
  AuditTrail.Default,
  EndUsers.Default,
  Experiments.Default,
  PublishGate.Default,
  Keys.Default,
  Queues.Default,
  RetentionLimits.Default,
  Budgets.Default,
  SignOn.Default.pipe(Layer.provide(AuditTrail.Default)),
  SingleSignOn.Default,
  OpenSessions.Default,
  Passkeys.Default,
  Scim.Default,
  ScimAccess.Default,
  Subscriptions.Default,
  Team.Default,
  TestCases.Default,
  UsageReport.Default
).pipe(
  Layer.provide([layerArtifacts, layerNoRevocations]),
  Layer.provideMerge(LimiterMemory.layerMemory),
  Layer.provide([layerWebAuthn, SqlDedupe.layerSql]),
  Layer.provide(
    layerOpenIdConnect.pipe(
      Layer.provide(layerUndici({ allow: Either.getOrThrow(parseAllowList("127.0.0.1/32")) }))
    )
  ),
  Layer.provideMerge(
    Layer.mergeAll(
      layerSql,
      SqlAudit.layerSql,
      layerTable,
      layerSecretBox([Redacted.make("a master secret of the tests, long enough")])
    )
  ),
  Layer.provide(Stores)
)

export interface Options {
  readonly token?: Option.Option<Redacted.Redacted>
  readonly appUrl?: string
  readonly credentials?: Layer.Layer<Credentials>
  /** Proxies whose `x-forwarded-for` is used. */
  readonly trustedProxies?: BlockList
}

/** `HttpServer`, and `KeyStore` as the server uses it. */
export const accountsServer = (options: Options = {}) => {
  const url = options.appUrl ?? appUrl
  const handlers = Layer.mergeAll(
    TenantsHandlers,
    DomainsHandlers,
    RecoveryHandlers,
    QueuesHandlers,
    SessionsHandlers,
    OpenSessionsHandlers,
    MemberSessionsHandlers,
    SignOnHandlers,
    SingleSignOnHandlers,
    ScimTokensHandlers,
    PasskeysHandlers,
    PasskeySignInHandlers,
    AgentsHandlers,
    AgentVersionsHandlers,
    TestCasesHandlers,
    ExperimentsHandlers,
    ManagedAgentsHandlers,
    TokensHandlers,
    AuditHandlers,
    RetentionHandlers,
    BudgetsHandlers,
    EndUsersHandlers,
    KeysHandlers,
    HostedUsageHandlers,
    PasswordsHandlers,
    UsersHandlers
  ).pipe(
    Layer.provide(SessionAuth.layer(Surface, url)),
    Layer.provide(ManageAuth.layer(Surface)),
    Layer.provide([SessionCookie.layer(url), SignOnCookie.layer(url), PasskeyCookie.layer(url)]),
    Layer.provide(Layer.succeed(TrustedProxies, options.trustedProxies ?? new BlockList())),
    Layer.provide(ScimRoute.layer(url)),
    Layer.provide(openGate),
    Layer.provide(OperatorAuth.layer(options.token ?? Option.some(Redacted.make(operatorToken))))
  )
  return HttpApiBuilder.serve().pipe(
    Layer.provide(Boundary.layer),
    Layer.provide(Layer.provide(HttpApiBuilder.api(Surface), handlers)),
    Layer.provide(Layer.succeed(TrustedProxies, options.trustedProxies ?? new BlockList())),
    Layer.provideMerge(
      Layer.provideMerge(
        UseCases,
        Layer.merge(
          options.credentials ?? layerScrypt({ log2N: 10, r: 8, p: 1 }),
          layerSecretBox([Redacted.make("a master secret of the tests, long enough")])
        )
      )
    ),
    Layer.provideMerge(NodeHttpServer.layer(() => createServer(), { port: 0, host: "127.0.0.1" }))
  )
}

/** Any JSON. The tests assert its fields. */
type Json = ReturnType<typeof JSON.parse>

export interface Answer {
  readonly status: number
  readonly headers: Headers
  /** The whole body. */
  readonly text: string
  /** `data` of the envelope. */
  readonly data: Json
  /** `error` of the envelope. */
  readonly error: Json
}

export interface Call {
  readonly body?: unknown
  readonly raw?: string
  readonly headers?: Record<string, string>
  /** The session's cookie, as {@link cookieOf} reads it. */
  readonly cookie?: string
}

/** Sends a request as the dashboard does, with its origin unless `headers` has another. An empty header is not sent. */
export const call = (method: string, path: string, { body, raw, headers = {}, cookie }: Call = {}) =>
  Effect.flatMap(HttpServer.HttpServer, ({ address }) =>
    Effect.promise(async (signal): Promise<Answer> => {
      if (address._tag !== "TcpAddress") throw new Error("The server has no port.")
      const text = raw ?? (body === undefined ? undefined : JSON.stringify(body))
      const sent = {
        ...(text === undefined ? {} : { "content-type": "application/json" }),
        ...(method === "GET" ? {} : { origin: appUrl }),
        ...(cookie === undefined ? {} : { cookie }),
        ...headers
      }
      const response = await fetch(`http://127.0.0.1:${address.port}${path}`, {
        method,
        signal,
        redirect: "manual",
        headers: Object.fromEntries(Object.entries(sent).filter(([, value]) => value !== "")),
        ...(text === undefined ? {} : { body: text })
      })
      const received = await response.text()
      const isJson = response.headers.get("content-type")?.startsWith("application/json") === true
      const parsed = isJson ? JSON.parse(received) : {}
      return {
        status: response.status,
        headers: response.headers,
        text: received,
        data: parsed.data,
        error: parsed.error
      }
    })
  )

/** Sends a request with the operator's token. */
export const operate = (method: string, path: string, options: Call = {}) =>
  call(method, path, {
    ...options,
    headers: { authorization: `Bearer ${operatorToken}`, ...options.headers }
  })

export const cookieOf = (answer: Answer): string => answer.headers.getSetCookie()[0]?.split(";")[0] ?? ""

export const password = "correct horse battery"

/** A tenant and its owner's session. */
export const signedIn = (email: string) =>
  Effect.gen(function* () {
    const made = yield* operate("POST", "/api/operator/tenants", {
      body: { name: "Shop", owner: { email, password } }
    })
    const login = yield* call("POST", "/api/auth/login", { body: { email, password } })
    const tenantId: string = made.data.tenant.id
    return { tenantId, cookie: cookieOf(login) }
  })
