/** Changes that wait for the deletion of their agent, which waits for them. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { layerMemory } from "../../../src/capabilities/ArtifactStore.ts"
import { layerTable } from "../../../src/capabilities/JobQueue/Table.ts"
import { ModelRuntime } from "../../../src/capabilities/ModelRuntime.ts"
import { VectorSearch } from "../../../src/capabilities/VectorSearch.ts"
import type { AgentScope } from "../../../src/domain/accounts/Access.ts"
import { PasskeyId } from "../../../src/domain/accounts/Passkey.ts"
import { CorrectionId } from "../../../src/domain/agents/Correction.ts"
import { ToolDefinition, ToolId } from "../../../src/domain/agents/Tool.ts"
import { WebhookId } from "../../../src/domain/events/Webhook.ts"
import { ChannelId, ConversationId, EndUserId, MessageId, UserId } from "../../../src/domain/Ids.ts"
import { responseOfFailure } from "../../../src/http/server/Boundary.ts"
import { PasskeyStore } from "../../../src/store/accounts/Passkeys.ts"
import { ScimStore } from "../../../src/store/accounts/Scim.ts"
import { TeamStore } from "../../../src/store/accounts/Team.ts"
import { AgentStore } from "../../../src/store/agents/Agents.ts"
import { ChannelStore } from "../../../src/store/channels/Channels.ts"
import { CorrectionStore } from "../../../src/store/agents/Corrections.ts"
import { PublishThresholdStore } from "../../../src/store/agents/PublishThresholds.ts"
import { TestCaseStore } from "../../../src/store/agents/TestCases.ts"
import { ToolStore } from "../../../src/store/agents/Tools.ts"
import { WidgetMessageStore } from "../../../src/store/chat/WidgetMessages.ts"
import { WidgetSessionStore } from "../../../src/store/chat/WidgetSessions.ts"
import { InboxListStore } from "../../../src/store/conversations/InboxList.ts"
import { WebhookDeliveryStore } from "../../../src/store/events/WebhookDeliveries.ts"
import { EntitlementStore } from "../../../src/store/billing/Entitlements.ts"
import { IdempotencyKeyStore } from "../../../src/store/IdempotencyKeys.ts"
import { ArtifactRows } from "../../../src/store/knowledge/ArtifactRows.ts"
import { IngestionJobStore } from "../../../src/store/knowledge/IngestionJobs.ts"
import { SourceStore } from "../../../src/store/knowledge/Sources.ts"
import { Corrections } from "../../../src/usecases/agents/Corrections.ts"
import { Experiments } from "../../../src/usecases/agents/Experiments.ts"
import { TestCases } from "../../../src/usecases/agents/TestCases.ts"
import { OtherModelCalls } from "../../../src/usecases/billing/OtherModelCalls.ts"
import { Insights } from "../../../src/usecases/conversations/Insights.ts"
import { Artifacts } from "../../../src/usecases/knowledge/Artifacts.ts"
import { Sources } from "../../../src/usecases/knowledge/Sources.ts"
import { crossing } from "../../store/Crossing.ts"
import * as Fixtures from "../../Fixtures.ts"
import { reset, serverLive } from "../../TestDatabase.ts"
import { layerSettings } from "../knowledge/ConnectorLayers.ts"

const live = Corrections.Default.pipe(
  Layer.provide([
    TestCases.Default,
    CorrectionStore.Default,
    Layer.mock(Experiments, { _tag: "usecases/agents/Experiments" }),
    Layer.mock(Insights, { _tag: "usecases/conversations/Insights" }),
    Layer.mock(ModelRuntime, {
      readsPassages: true,
      defaultModel: "",
      contextWindow: 0,
      acceptsImages: false,
      readable: () => []
    }),
    Layer.mock(VectorSearch, {}),
    Layer.mock(OtherModelCalls, {
      _tag: "usecases/billing/OtherModelCalls",
      model: () => Effect.runSync(Effect.dieMessage("Unused."))
    })
  ]),
  Layer.provideMerge(Sources.Default.pipe(Layer.provide([layerSettings(), Artifacts.Default]))),
  Layer.provideMerge(
    Layer.mergeAll(
      AgentStore.Default,
      ChannelStore.Default,
      PublishThresholdStore.Default,
      ToolStore.Default,
      ArtifactRows.Default,
      EntitlementStore.Default,
      IdempotencyKeyStore.Default,
      InboxListStore.Default,
      IngestionJobStore.Default,
      PasskeyStore.Default,
      ScimStore.Default,
      TeamStore.Default,
      WebhookDeliveryStore.Default,
      WidgetMessageStore.Default,
      WidgetSessionStore.Default,
      SourceStore.Default,
      TestCaseStore.Default,
      layerMemory,
      layerTable
    )
  )
)

serverLive("Beside the deletion of its agent", (it) => {
  it.effect("a correction is approved by a second attempt after a deadlock", () =>
    Effect.gen(function* () {
      yield* reset
      const sql = yield* SqlClient.SqlClient
      const scope = yield* Fixtures.agent()
      const id = CorrectionId.make("cor_1")
      yield* sql`
        insert into corrections (tenant_id, id, agent_id, question, answer, origin, run_ids)
        values (${scope.tenantId}, ${id}, ${scope.agentId}, 'When?', 'At nine.', 'written', '[]')`
      const approved = yield* crossing(
        {
          first: sql`select from agents where tenant_id = ${scope.tenantId} for update`,
          second: sql`select from corrections where tenant_id = ${scope.tenantId} for update`,
          waiting: "for key share"
        },
        Effect.flatMap(Corrections, ({ approve }) => approve(scope, id, { force: true }))
      )
      expect(approved.status).toBe("approved")
    }).pipe(Effect.provide(live))
  )

  it.effect("a source, tool, channel or threshold that is added is refused, once the agent is deleted", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const [sources, tools] = [yield* Sources, yield* ToolStore]
      const [channels, thresholds] = [yield* ChannelStore, yield* PublishThresholdStore]
      const afterDeletion = <A, E>(add: (scope: AgentScope) => Effect.Effect<A, E>) =>
        Effect.gen(function* () {
          yield* reset
          const scope = yield* Fixtures.agent()
          return yield* crossing(
            {
              first: sql`delete from agents where tenant_id = ${scope.tenantId}`,
              second: sql`select 1`,
              waiting: "for key share"
            },
            add(scope)
          )
        })
      const source = { type: "TEXT", name: "Hours", config: { text: "We open at nine." } } as const
      const definition = Schema.decodeSync(ToolDefinition)({})
      const channel = {
        id: ChannelId.make("chn_1"),
        channel: "telegram" as const,
        externalId: "1",
        accessToken: "sealed",
        secrets: null,
        profile: {},
        sourceScope: null,
        active: true
      }
      const refused = yield* Effect.flip(afterDeletion((scope) => sources.add(scope, source)))
      expect(refused._tag).toBe("NOT_FOUND")
      expect(
        yield* afterDeletion((scope) =>
          tools.insert(scope, { id: ToolId.make("tol_1"), name: "find", definition, secret: null })
        )
      ).toEqual(Option.none())
      expect(yield* afterDeletion((scope) => channels.insert(scope, channel))).toEqual(Option.none())
      expect(
        yield* afterDeletion((scope) => thresholds.set(scope, { minPass: 1, noRegression: true }))
      ).toEqual(Option.none())
    }).pipe(Effect.provide(live))
  )

  it.effect("what is added to anything else is answered with 404, once that is deleted", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const [idempotency, sessions, team] = [
        yield* IdempotencyKeyStore,
        yield* WidgetSessionStore,
        yield* TeamStore
      ]
      const [passkeys, scim, deliveries] = [
        yield* PasskeyStore,
        yield* ScimStore,
        yield* WebhookDeliveryStore
      ]
      const [inbox, widget] = [yield* InboxListStore, yield* WidgetMessageStore]
      const userId = UserId.make("mem_1")
      const [endUserId, conversationId] = [EndUserId.make("usr_1"), ConversationId.make("cnv_1")]
      const messageId = MessageId.make("msg_1")
      const bytes = new Uint8Array(32)
      const passkey = { name: "Phone", credentialId: "c", publicKey: bytes, counter: 0, backedUp: false }
      const invitation = {
        fingerprint: bytes,
        by: userId,
        role: "agent",
        lifetime: Duration.hours(1)
      } as const
      type Addition = (
        scope: Effect.Effect.Success<ReturnType<typeof Fixtures.key>>
      ) => Effect.Effect<unknown>
      const additions: ReadonlyArray<readonly [table: string, kind: string, into: string, add: Addition]> = [
        ["agents", "agent", "idempotency_keys", (scope) => idempotency.claim(scope, "once")],
        [
          "agents",
          "agent",
          "widget_sessions",
          (scope) => sessions.insert(scope, bytes, { endUserId: EndUserId.make("usr_2"), externalId: null })
        ],
        ["users", "user", "user_invitations", (scope) => team.invite({ ...scope, ...invitation, userId })],
        [
          "users",
          "user",
          "passkeys",
          (scope) => passkeys.insert(scope, { ...passkey, userId, id: PasskeyId.make("pky_1") })
        ],
        [
          "scim_groups",
          "group",
          "scim_group_members",
          (scope) => scim.changeMembers(scope, "grp_1", { added: [userId], removed: [] })
        ],
        [
          "webhook_endpoints",
          "webhook",
          "webhook_deliveries",
          (scope) => deliveries.test(scope, WebhookId.make("whk_1"))
        ],
        [
          "conversations",
          "conversation",
          "conversation_reads",
          (scope) => inbox.read({ ...scope, userId }, conversationId, messageId)
        ],
        [
          "messages",
          "message",
          "message_feedback",
          (scope) => widget.rate(scope, conversationId, { messageId, rating: 1 })
        ]
      ]
      for (const [table, kind, into, add] of additions) {
        yield* reset
        const scope = yield* Effect.flatMap(Fixtures.agent(), Fixtures.key)
        const { agentId, tenantId } = scope
        yield* sql`insert into users (tenant_id, id, email, role) values (${tenantId}, ${userId}, 'a@b.example', 'agent')`
        yield* sql`insert into scim_groups (tenant_id, id, name) values (${tenantId}, 'grp_1', 'Staff')`
        yield* sql`
          insert into webhook_endpoints (id, tenant_id, url, events, payload, secret)
          values ('whk_1', ${tenantId}, 'https://example.com/', '{}', 'thin', 'sealed')`
        yield* sql`insert into end_users (tenant_id, id) values (${tenantId}, ${endUserId})`
        yield* sql`
          insert into conversations (id, tenant_id, agent_id, end_user_id, channel)
          values (${conversationId}, ${tenantId}, ${agentId}, ${endUserId}, 'widget')`
        yield* sql`
          insert into messages (id, tenant_id, conversation_id, agent_id, position, role, content)
          values (${messageId}, ${tenantId}, ${conversationId}, ${agentId}, 1, 'assistant', 'At nine.')`
        const { status, body } = yield* crossing(
          {
            first: sql`delete from ${sql(table)} where tenant_id = ${tenantId}`,
            second: sql`select 1`,
            waiting: `insert into ${into}`
          },
          add(scope)
        ).pipe(
          Effect.zipRight(Effect.dieMessage(`Nothing refused ${into}.`)),
          Effect.catchAllCause((cause) => responseOfFailure(cause, "req_1"))
        )
        expect([into, status, JSON.stringify(body)]).toEqual([
          into,
          404,
          expect.stringContaining(`There is no such ${kind}.`)
        ])
      }
    }).pipe(Effect.provide(live))
  )
})
