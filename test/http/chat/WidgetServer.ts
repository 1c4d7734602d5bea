/** The hosted stream and the widget's routes with the suite's database. Keys, cookies and the model are scripted. */
import * as HttpApi from "@effect/platform/HttpApi"
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { ArtifactStore, layerMemory } from "../../../src/capabilities/ArtifactStore.ts"
import * as SqlAudit from "../../../src/capabilities/AuditLog/Sql.ts"
import * as QueueTable from "../../../src/capabilities/JobQueue/Table.ts"
import { layerScrypt } from "../../../src/capabilities/Credentials/Scrypt.ts"
import { KeyStore, type LiveKey } from "../../../src/capabilities/KeyStore.ts"
import type { Role } from "../../../src/domain/accounts/Access.ts"
import { Unauthorized } from "../../../src/domain/Errors.ts"
import { AgentId, TenantId, UserId } from "../../../src/domain/Ids.ts"
import * as CallerAuth from "../../../src/http/hosted/accounts/CallerAuth.ts"
import { HostedChatApi, RemovedRoutesApi } from "../../../src/http/hosted/chat/ChatApi.ts"
import { HostedChatHandlers, RemovedRoutesHandlers } from "../../../src/http/hosted/chat/ChatHandlers.ts"
import { SdkApi } from "../../../src/http/hosted/chat/SdkApi.ts"
import { SdkHandlers } from "../../../src/http/hosted/chat/SdkHandlers.ts"
import * as RealtimeSocket from "../../../src/http/realtime/RealtimeSocket.ts"
import { AgentRunStore } from "../../../src/store/chat/AgentRuns.ts"
import { AgentStore } from "../../../src/store/agents/Agents.ts"
import { ArtifactRows } from "../../../src/store/knowledge/ArtifactRows.ts"
import { ConversationStates } from "../../../src/store/conversations/ConversationStates.ts"
import { ConversationStore } from "../../../src/store/conversations/Conversations.ts"
import { SourceStore } from "../../../src/store/knowledge/Sources.ts"
import { TestConversationStore } from "../../../src/store/chat/TestConversations.ts"
import { WidgetMessageStore } from "../../../src/store/chat/WidgetMessages.ts"
import { WidgetSessionStore } from "../../../src/store/chat/WidgetSessions.ts"
import { Accounts } from "../../../src/usecases/accounts/Accounts.ts"
import { AgentRuns } from "../../../src/usecases/chat/AgentRuns.ts"
import { Artifacts } from "../../../src/usecases/knowledge/Artifacts.ts"
import { ChannelSender } from "../../../src/usecases/channels/ChannelSender.ts"
import { Handoff } from "../../../src/usecases/conversations/Handoff.ts"
import { ConversationControl } from "../../../src/usecases/conversations/ConversationControl.ts"
import { SourceScopes } from "../../../src/usecases/knowledge/SourceScopes.ts"
import { ApiKeyStore } from "../../../src/store/accounts/ApiKeys.ts"
import { AgentWidgetStore } from "../../../src/store/agents/Widgets.ts"
import { Keys } from "../../../src/usecases/accounts/Keys.ts"
import { Widgets } from "../../../src/usecases/agents/Widgets.ts"
import { Attachments } from "../../../src/usecases/chat/widget/Attachments.ts"
import { Callers } from "../../../src/usecases/chat/widget/Callers.ts"
import { HostedTurn } from "../../../src/usecases/chat/widget/HostedTurn.ts"
import { WidgetSessions } from "../../../src/usecases/chat/widget/Sessions.ts"
import { VisitorTokens } from "../../../src/usecases/chat/widget/VisitorTokens.ts"
import { WidgetChat } from "../../../src/usecases/chat/widget/WidgetChat.ts"
import { reset } from "../../TestDatabase.ts"
import { turnLayer } from "../../usecases/chat/TurnHarness.ts"
import { liveKey, rateLimits } from "../PublicServer.ts"
import * as TestServer from "../TestServer.ts"
import { openGate } from "../OpenGate.ts"

export const appUrl = "https://app.example"

/** Keys by their secrets. A plan without the public API restricts only `/v1`. */
const keys: Readonly<Record<string, LiveKey>> = {
  spk_chat: liveKey({ permissions: ["chat"], publicApi: false }),
  spk_traced: liveKey({ permissions: ["chat", "trace_read"] }),
  spk_other: liveKey({ permissions: ["chat"], agentId: AgentId.make("agt_2") }),
  spk_retrieve: liveKey({ permissions: ["retrieve"] }),
  spk_org: liveKey({ scope: "org", agentId: null }),
  spk_page: liveKey({ permissions: ["chat"], allowedOrigins: ["https://shop.example"] })
}

const keyStore = Layer.succeed(KeyStore, {
  find: (secret: Redacted.Redacted) => Effect.succeed(Option.fromNullable(keys[Redacted.value(secret)])),
  invalidate: () => Effect.void
})

const roles: Readonly<Record<string, Role>> = { owner: "owner", agent: "agent", viewer: "viewer" }

/** The token of a session is the role of its user. */
const accounts = Layer.mock(Accounts, {
  _tag: "usecases/accounts/Accounts",
  authenticate: (token: Redacted.Redacted) => {
    const role = roles[Redacted.value(token)]
    return role === undefined
      ? Effect.fail(new Unauthorized({ message: "Sign in first." }))
      : Effect.succeed({
          userId: UserId.make(`mbr_${role}`),
          tenantId: TenantId.make("ten_1"),
          email: `${role}@example.com`,
          role,
          session: null
        })
  }
})

const Surface = HttpApi.make("spoke").add(HostedChatApi).add(RemovedRoutesApi).add(SdkApi)

const stores = Layer.mergeAll(
  AgentStore.Default,
  AgentWidgetStore.Default,
  ApiKeyStore.Default,
  ArtifactRows.Default,
  ConversationStates.Default,
  ConversationStore.Default,
  SourceStore.Default,
  TestConversationStore.Default,
  WidgetMessageStore.Default,
  WidgetSessionStore.Default
)

const sender = Layer.succeed(ChannelSender, { post: () => Effect.void, markSeen: () => Effect.void })

const useCases = (artifacts: Layer.Layer<ArtifactStore>) =>
  Layer.mergeAll(
    HostedTurn.Default.pipe(Layer.provide(AgentRuns.Default)),
    WidgetChat.Default,
    AgentRuns.Default,
    Widgets.Default.pipe(
      Layer.provide(Keys.Default),
      Layer.provide(keyStore),
      Layer.provide(layerScrypt({ log2N: 10, r: 8, p: 1 }))
    )
  ).pipe(
    Layer.provideMerge(
      Layer.mergeAll(Attachments.Default, Callers.Default, VisitorTokens.Default, WidgetSessions.Default)
    ),
    Layer.provideMerge(
      Handoff.Default.pipe(Layer.provide(ConversationControl.Default), Layer.provide(sender))
    ),
    Layer.provideMerge(Layer.mergeAll(SourceScopes.Default, Artifacts.Default)),
    Layer.provideMerge(Layer.mergeAll(artifacts, QueueTable.layerTable)),
    Layer.provideMerge(Layer.merge(stores, Layer.merge(AgentRunStore.Default, SqlAudit.layerSql))),
    Layer.provideMerge(turnLayer())
  )

/** `TestServer`, its use-cases, and the script of the model. */
export const layer = (artifacts: Layer.Layer<ArtifactStore> = layerMemory) =>
  Layer.suspend(() =>
    TestServer.layer(
      HttpApiBuilder.api(Surface).pipe(
        Layer.provide(Layer.mergeAll(HostedChatHandlers, RemovedRoutesHandlers, SdkHandlers)),
        Layer.provide(CallerAuth.layer(Surface, appUrl)),
        Layer.provide(RealtimeSocket.layer()),
        Layer.provide(Layer.mergeAll(keyStore, rateLimits, accounts, openGate))
      )
    ).pipe(Layer.provideMerge(useCases(artifacts)))
  )

/** Empties the database, and adds a tenant with two agents and another tenant with one. */
export const seedDatabase = Effect.gen(function* () {
  yield* reset
  const sql = yield* SqlClient.SqlClient
  yield* sql`insert into tenants (id, name) values ('ten_1', 'Shop'), ('ten_2', 'Other')`
  yield* sql`
    insert into subscriptions (tenant_id, plan, public_api, turns_limit, ingestion_jobs_limit, sources_limit, overage_enabled)
    select id, 'self-hosted', true, 100, 100, 100, false from tenants`
  yield* sql`
    insert into agents (id, tenant_id, name, greeting) values
      ('agt_1', 'ten_1', 'Helper', 'Hello! How can I help?'), ('agt_2', 'ten_1', 'Second', null),
      ('agt_3', 'ten_2', 'Foreign', null)`
  yield* sql`
    insert into api_keys (id, tenant_id, agent_id, name, prefix, secret_hash, scope, permissions)
    values ('key_1', 'ten_1', 'agt_1', 'Page', 'spk_chat', sha256('key_1'), 'agent', '{chat}')`
  return sql
})
