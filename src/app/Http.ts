/** Wires all HTTP surfaces for one listener. */
import type * as HttpApi from "@effect/platform/HttpApi"
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import type * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as HttpMiddleware from "@effect/platform/HttpMiddleware"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Api } from "../http/Api.ts"
import * as DescriptionRoutes from "../http/DescriptionRoutes.ts"
import * as Assets from "../http/hosted/chat/Assets.ts"
import { AgentsHandlers, ManagedAgentsHandlers } from "../http/hosted/agents/AgentsHandlers.ts"
import {
  AgentVersionsHandlers,
  ManagedAgentVersionsHandlers
} from "../http/hosted/agents/AgentVersionsHandlers.ts"
import { AuditHandlers } from "../http/hosted/accounts/AuditHandlers.ts"
import * as CallerAuth from "../http/hosted/accounts/CallerAuth.ts"
import { HostedChatHandlers, RemovedRoutesHandlers } from "../http/hosted/chat/ChatHandlers.ts"
import { ChannelsHandlers, ManagedChannelsHandlers } from "../http/hosted/channels/ChannelsHandlers.ts"
import { EmailLogsHandlers } from "../http/hosted/accounts/EmailLogsHandlers.ts"
import { EndUsersHandlers, ManagedEndUsersHandlers } from "../http/hosted/conversations/EndUsersHandlers.ts"
import {
  ConversationsHandlers,
  ManagedConversationsHandlers
} from "../http/hosted/conversations/ConversationsHandlers.ts"
import { CrawlHandlers, ManagedCrawlHandlers } from "../http/hosted/knowledge/CrawlHandlers.ts"
import { KeysHandlers, ManagedKeysHandlers } from "../http/hosted/accounts/KeysHandlers.ts"
import {
  ManagedMemberSessionsHandlers,
  MemberSessionsHandlers,
  OpenSessionsHandlers
} from "../http/hosted/accounts/OpenSessionsHandlers.ts"
import { ReplaysHandlers } from "../http/hosted/chat/ReplaysHandlers.ts"
import { SdkHandlers } from "../http/hosted/chat/SdkHandlers.ts"
import * as SessionAuth from "../http/hosted/accounts/SessionAuth.ts"
import * as SessionCookie from "../http/hosted/accounts/SessionCookie.ts"
import { SessionsHandlers } from "../http/hosted/accounts/SessionsHandlers.ts"
import * as PasskeyCookie from "../http/hosted/accounts/passkeys/PasskeyCookie.ts"
import { PasskeySignInHandlers, PasskeysHandlers } from "../http/hosted/accounts/passkeys/PasskeysHandlers.ts"
import * as SignOnCookie from "../http/hosted/accounts/SignOnCookie.ts"
import {
  ManagedSingleSignOnHandlers,
  ScimTokensHandlers,
  SignOnHandlers,
  SingleSignOnHandlers
} from "../http/hosted/accounts/SingleSignOnHandlers.ts"
import { SourcesHandlers, ManagedSourcesHandlers } from "../http/hosted/knowledge/SourcesHandlers.ts"
import { ContentsHandlers, ManagedContentsHandlers } from "../http/hosted/knowledge/ContentsHandlers.ts"
import { FindingsHandlers, ManagedFindingsHandlers } from "../http/hosted/knowledge/FindingsHandlers.ts"
import { ManagedModelsHandlers, ModelsHandlers } from "../http/hosted/agents/ModelsHandlers.ts"
import { ImpactHandlers, ManagedImpactHandlers } from "../http/hosted/knowledge/ImpactHandlers.ts"
import { CorrectionsHandlers, ManagedCorrectionsHandlers } from "../http/hosted/agents/CorrectionsHandlers.ts"
import { InsightsHandlers } from "../http/hosted/conversations/InsightsHandlers.ts"
import {
  InboxItemsHandlers,
  ManagedInboxItemsHandlers
} from "../http/hosted/conversations/InboxItemsHandlers.ts"
import {
  InboxWorkHandlers,
  ManagedInboxWorkHandlers
} from "../http/hosted/conversations/InboxWorkHandlers.ts"
import { InboxViewHandlers } from "../http/hosted/conversations/InboxViewHandlers.ts"
import { TakeoverHandlers, ManagedTakeoverHandlers } from "../http/hosted/conversations/TakeoverHandlers.ts"
import { TokensHandlers } from "../http/hosted/accounts/TokensHandlers.ts"
import { ExperimentsHandlers, ManagedExperimentsHandlers } from "../http/hosted/agents/ExperimentsHandlers.ts"
import { TestCasesHandlers, ManagedTestCasesHandlers } from "../http/hosted/agents/TestCasesHandlers.ts"
import { ManagedStartHandlers, StartHandlers } from "../http/hosted/agents/StartHandlers.ts"
import { ManagedWidgetsHandlers, WidgetsHandlers } from "../http/hosted/agents/WidgetsHandlers.ts"
import * as ToolAddresses from "../http/hosted/agents/ToolAddresses.ts"
import {
  ManagedToolsHandlers,
  ToolsHandlers,
  ToolSignInsHandlers
} from "../http/hosted/agents/ToolsHandlers.ts"
import { BudgetsHandlers, ManagedBudgetsHandlers } from "../http/hosted/billing/BudgetsHandlers.ts"
import { ManagedRetentionHandlers, RetentionHandlers } from "../http/hosted/accounts/RetentionHandlers.ts"
import { HostedUsageHandlers, ManagedUsageHandlers } from "../http/hosted/billing/UsageHandlers.ts"
import {
  ManagedUsersHandlers,
  PasswordsHandlers,
  UsersHandlers
} from "../http/hosted/accounts/UsersHandlers.ts"
import { ConfigurationHandlers } from "../http/manage/ConfigurationHandlers.ts"
import { ListenersHandlers } from "../http/manage/ListenersHandlers.ts"
import { ManagedWebhooksHandlers, WebhooksHandlers } from "../http/hosted/events/WebhooksHandlers.ts"
import * as ManageAuth from "../http/manage/ManageAuth.ts"
import * as McpRoute from "../http/mcp/McpRoute.ts"
import * as OperatorAuth from "../http/operator/OperatorAuth.ts"
import { DomainsHandlers } from "../http/operator/DomainsHandlers.ts"
import { ImportsHandlers } from "../http/operator/ImportsHandlers.ts"
import { MovesHandlers } from "../http/operator/MovesHandlers.ts"
import { QueuesHandlers } from "../http/operator/QueuesHandlers.ts"
import { RecoveryHandlers } from "../http/operator/RecoveryHandlers.ts"
import { TenantsHandlers } from "../http/operator/TenantsHandlers.ts"
import * as ScimRoute from "../http/scim/ScimRoute.ts"
import * as RealtimeSocket from "../http/realtime/RealtimeSocket.ts"
import { EmailHandlers } from "../http/webhooks/EmailHandlers.ts"
import { BillingHandlers } from "../http/webhooks/BillingHandlers.ts"
import * as Deliveries from "../http/webhooks/Deliveries.ts"
import { MessagingHandlers } from "../http/webhooks/MessagingHandlers.ts"
import type * as Auth from "../http/Auth.ts"
import { TrustedProxies } from "../http/server/ClientAddress.ts"
import { ConnectionLimits } from "../http/server/Connections.ts"
import * as Headers from "../http/server/Headers.ts"
import * as KeyAuth from "../http/KeyAuth.ts"
import type { SameOrigin } from "../http/hosted/accounts/SameOrigin.ts"
import * as Overload from "../http/server/Overload.ts"
import { publicGroups, serve } from "../http/server/Server.ts"
import type { Settings } from "./config/Config.ts"
import * as Lifecycle from "./Lifecycle.ts"
import * as Package from "./Package.ts"
import { Secrets } from "./config/Secrets.ts"

const hosted = Layer.mergeAll(
  AgentsHandlers,
  AgentVersionsHandlers,
  HostedUsageHandlers,
  AuditHandlers,
  ChannelsHandlers,
  HostedChatHandlers,
  RemovedRoutesHandlers,
  ReplaysHandlers,
  SdkHandlers,
  EmailLogsHandlers,
  RetentionHandlers,
  EndUsersHandlers,
  PasswordsHandlers,
  UsersHandlers,
  ConversationsHandlers,
  CrawlHandlers,
  KeysHandlers,
  SessionsHandlers,
  OpenSessionsHandlers,
  MemberSessionsHandlers,
  SignOnHandlers,
  SingleSignOnHandlers,
  ScimTokensHandlers,
  PasskeysHandlers,
  PasskeySignInHandlers,
  SourcesHandlers,
  InboxViewHandlers,
  InboxWorkHandlers,
  InboxItemsHandlers,
  InsightsHandlers,
  ContentsHandlers,
  FindingsHandlers,
  ImpactHandlers,
  ModelsHandlers,
  CorrectionsHandlers,
  TakeoverHandlers,
  StartHandlers,
  TokensHandlers,
  TestCasesHandlers,
  ExperimentsHandlers,
  WidgetsHandlers,
  ToolsHandlers,
  ToolSignInsHandlers,
  WebhooksHandlers,
  BudgetsHandlers
)

/** The same use-cases for programs with an access token. */
const managed = Layer.mergeAll(
  ConfigurationHandlers,
  ListenersHandlers,
  ManagedAgentsHandlers,
  ManagedAgentVersionsHandlers,
  ManagedKeysHandlers,
  ManagedStartHandlers,
  ManagedWidgetsHandlers,
  ManagedToolsHandlers,
  ManagedTestCasesHandlers,
  ManagedExperimentsHandlers,
  ManagedContentsHandlers,
  ManagedFindingsHandlers,
  ManagedImpactHandlers,
  ManagedModelsHandlers,
  ManagedCorrectionsHandlers,
  ManagedChannelsHandlers,
  ManagedSourcesHandlers,
  ManagedCrawlHandlers,
  ManagedTakeoverHandlers,
  ManagedEndUsersHandlers,
  ManagedConversationsHandlers,
  ManagedInboxWorkHandlers,
  ManagedInboxItemsHandlers,
  ManagedUsageHandlers,
  ManagedUsersHandlers,
  ManagedMemberSessionsHandlers,
  ManagedSingleSignOnHandlers,
  ManagedRetentionHandlers,
  ManagedWebhooksHandlers,
  ManagedBudgetsHandlers
)

const operator = Layer.mergeAll(
  DomainsHandlers,
  ImportsHandlers,
  MovesHandlers,
  QueuesHandlers,
  RecoveryHandlers,
  TenantsHandlers
)

type Groups =
  typeof Api extends HttpApi.HttpApi<infer Id, infer All, infer _E, infer _R>
    ? HttpApiGroup.HttpApiGroup.ToService<Id, All>
    : never

/** A compile-time check that `handlers` contains every group of {@link Api}. The error then appears here. */
const ofEveryGroup = <E, R>(handlers: Layer.Layer<Groups, E, R>) => handlers

const handlers = ofEveryGroup(
  Layer.mergeAll(publicGroups, hosted, managed, operator, MessagingHandlers, BillingHandlers, EmailHandlers)
)

/** Authentication: agent keys, sessions and access tokens of people, and the operator's token. */
const authentication = ({ appUrl }: Settings) =>
  Layer.mergeAll(
    KeyAuth.layer(Api),
    CallerAuth.layer(Api, appUrl),
    SessionAuth.layer(Api, appUrl),
    ManageAuth.layer(Api),
    Layer.unwrapEffect(Effect.map(Secrets, ({ operatorToken }) => OperatorAuth.layer(operatorToken)))
  )

type Guards =
  Auth.AgentKeyAuth | Auth.CallerAuth | Auth.SessionAuth | Auth.ManageAuth | Auth.OperatorAuth | SameOrigin

/** Every group with its handlers. `guards` are the authentication middlewares. */
export const api = <E, R>(settings: Settings, guards: Layer.Layer<Guards, E, R>) =>
  HttpApiBuilder.api(Api).pipe(
    Layer.provide(handlers),
    Layer.provide(
      Layer.mergeAll(
        guards,
        SessionCookie.layer(settings.appUrl),
        SignOnCookie.layer(settings.appUrl),
        ToolAddresses.layer(settings.appUrl),
        PasskeyCookie.layer(settings.appUrl)
      )
    ),
    Layer.provide(RealtimeSocket.layer()),
    Layer.provide(Deliveries.layerRouter),
    Layer.provide(McpRoute.layer({ appUrl: settings.appUrl, version: Package.version })),
    Layer.provide(ScimRoute.layer(settings.appUrl)),
    Layer.provide(ToolAddresses.layerDocument(settings.appUrl)),
    Layer.provide(Assets.layer(Package.ui, settings.realtimeUrl)),
    Layer.provide(Lifecycle.readiness),
    Layer.provide(Layer.succeed(TrustedProxies, settings.trustedProxies))
  )

/** {@link api} for requests from the network. */
export const guarded = (settings: Settings) => api(settings, authentication(settings))

/** Whether browsers are told to use https, the public address in the API description, and the proxies in front. */
export const publicAccess = ({ apiUrl, appUrl, trustedProxies }: Settings) =>
  Layer.mergeAll(
    Layer.succeed(Headers.OverHttps, new URL(appUrl).protocol === "https:"),
    Layer.succeed(TrustedProxies, trustedProxies),
    Layer.succeed(DescriptionRoutes.ApiAddress, apiUrl.replace(/\/v1\/?$/u, ""))
  )

/** Settings of the listener's overload control. */
export const overload = (settings: Settings) =>
  Layer.mergeAll(
    Layer.succeed(Overload.MaxWait, settings.maxWait),
    Layer.effect(
      ConnectionLimits,
      Effect.map(ConnectionLimits, (limits) => ({ ...limits, maxConnections: settings.maxConnections }))
    ),
    Layer.effect(
      Overload.DatabaseProbe,
      Effect.map(SqlClient.SqlClient, (sql) => Effect.withTracerEnabled(sql`select 1`, false))
    ),
    Layer.effect(
      Overload.DrainBegins,
      Effect.map(Lifecycle.Draining, ({ whenBegun }) => whenBegun)
    ),
    publicAccess(settings)
  )

/**
 * Serves on the `HttpServer` of the context, with the use-cases of `app/Live`. `http/server/Span` creates the spans.
 */
export const layer = (settings: Settings) =>
  Layer.mergeAll(
    Deliveries.layer,
    serve(guarded(settings)).pipe(HttpMiddleware.withTracerDisabledWhen(() => true))
  ).pipe(Layer.provide(publicAccess(settings)))
