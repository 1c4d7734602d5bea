/** What a file of agents is applied with: the stores, and two providers of channels that know their accounts by a token. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as SqlAudit from "../../../src/capabilities/AuditLog/Sql.ts"
import {
  type ChannelAdapter,
  ChannelError,
  layerChannels
} from "../../../src/capabilities/ChannelAdapters.ts"
import { layerScrypt } from "../../../src/capabilities/Credentials/Scrypt.ts"
import * as QueueTable from "../../../src/capabilities/JobQueue/Table.ts"
import { layerSql } from "../../../src/capabilities/KeyStore/Sql.ts"
import * as DerivedKeys from "../../../src/capabilities/SecretBox/DerivedKeys.ts"
import { Configuration } from "../../../src/domain/agents/Configuration.ts"
import { TenantId } from "../../../src/domain/Ids.ts"
import { ApiKeyStore } from "../../../src/store/accounts/ApiKeys.ts"
import { AgentStore } from "../../../src/store/agents/Agents.ts"
import { AgentVersionStore } from "../../../src/store/agents/AgentVersions.ts"
import { ConfiguredPartStore } from "../../../src/store/agents/ConfiguredParts.ts"
import { TestCaseStore } from "../../../src/store/agents/TestCases.ts"
import { ToolStore } from "../../../src/store/agents/Tools.ts"
import { AgentWidgetStore } from "../../../src/store/agents/Widgets.ts"
import { EntitlementStore } from "../../../src/store/billing/Entitlements.ts"
import { ChannelStore } from "../../../src/store/channels/Channels.ts"
import { IdempotencyKeyStore } from "../../../src/store/IdempotencyKeys.ts"
import { IngestionJobStore } from "../../../src/store/knowledge/IngestionJobs.ts"
import { SourceStore } from "../../../src/store/knowledge/Sources.ts"
import type { AuditContext } from "../../../src/usecases/accounts/AuditTrail.ts"
import { Keys } from "../../../src/usecases/accounts/Keys.ts"
import { Agents } from "../../../src/usecases/agents/Agents.ts"
import { Configurations } from "../../../src/usecases/agents/Configurations.ts"
import { ConfiguredChannels } from "../../../src/usecases/agents/ConfiguredChannels.ts"
import { ConfiguredParts } from "../../../src/usecases/agents/ConfiguredParts.ts"
import { TestCases } from "../../../src/usecases/agents/TestCases.ts"
import { tokens } from "../chat/TurnHarness.ts"
import { ToolRevocations } from "../../../src/usecases/agents/ToolRevocations.ts"
import { Tools } from "../../../src/usecases/agents/Tools.ts"
import { Widgets } from "../../../src/usecases/agents/Widgets.ts"
import { ChannelProof } from "../../../src/usecases/channels/ChannelProof.ts"
import { Channels } from "../../../src/usecases/channels/Channels.ts"
import { Sources } from "../../../src/usecases/knowledge/Sources.ts"
import { SourceScopes } from "../../../src/usecases/knowledge/SourceScopes.ts"
import { channelSettings } from "../../channels/Settings.ts"
import * as Fixtures from "../../Fixtures.ts"
import { layerArtifacts } from "../../MemoryArtifacts.ts"
import { reset } from "../../TestDatabase.ts"
import { layerSettings } from "../knowledge/ConnectorLayers.ts"

const unused = () => Effect.dieMessage("A file of agents sends and receives nothing.")

/** Accounts whose provider never answers. */
const silent = /^0/u

/** A token `ACCOUNT-…` is that account's. Every question to the provider is counted. */
const adapter = (name: string, isTold: boolean, asked: Array<string>): ChannelAdapter => ({
  name,
  title: name,
  form: {
    account: isTold ? null : "Account",
    secrets: isTold ? [] : [{ name: "appSecret", label: "App secret" }],
    settings: [{ name: "tone", label: "Tone", optional: true }]
  },
  webhook: "account",
  verify: () => Either.void,
  normalize: () => ({ arrivals: [], statuses: [], ignored: 0 }),
  prove: ({ accessToken, externalId, profile }) => {
    const [account = ""] = Redacted.value(accessToken).split("-")
    asked.push(`${name} ${account}`)
    underWay.now++
    underWay.most = Math.max(underWay.most, underWay.now)
    const answer =
      isTold || account === externalId
        ? Effect.succeed({ externalId: account, profile })
        : new ChannelError({
            reason: "Refused",
            message: "The token is not the account's.",
            retryable: false
          })
    return Effect.yieldNow().pipe(
      Effect.zipRight(silent.test(account) ? Effect.never : answer),
      Effect.ensuring(Effect.sync(() => underWay.now--))
    )
  },
  maxTextLength: 1_000,
  maxCaptionLength: 0,
  formatText: (text) => text,
  fileTypes: {},
  send: unused,
  markSeen: unused,
  locate: unused,
  read: unused
})

/** What providers were asked, in order. */
export const asked: Array<string> = []

/** Questions to providers: those that wait for an answer, and how many that were at most. */
export const underWay = { now: 0, most: 0 }

/** Agents whose tokens were revoked, and one whose tokens cannot be read. */
export const revocations: { readonly revoked: Array<string>; unreadable: string | null } = {
  revoked: [],
  unreadable: null
}

const layerRevocations = Layer.succeed(
  ToolRevocations,
  ToolRevocations.make({
    ofAgent: ({ agentId }) =>
      Effect.suspend(() =>
        agentId === revocations.unreadable
          ? Effect.dieMessage("The tokens cannot be read.")
          : Effect.succeed(
              Effect.sync(() => Effect.asVoid(Effect.sync(() => revocations.revoked.push(agentId))))
            )
      )
  })
)

export const live = Configurations.Default.pipe(
  Layer.provide(ConfiguredParts.Default),
  Layer.provide(ConfiguredChannels.Default),
  Layer.provideMerge(
    Layer.mergeAll(
      Agents.Default,
      Channels.Default.pipe(Layer.provide(ChannelProof.Default)),
      Sources.Default,
      TestCases.Default,
      Tools.Default.pipe(Layer.provide(tokens)),
      Widgets.Default.pipe(Layer.provide(Keys.Default))
    )
  ),
  Layer.provide(layerChannels([adapter("told", true, asked), adapter("named", false, asked)])),
  Layer.provide(SqlAudit.layerSql),
  Layer.provide(channelSettings()),
  Layer.provide(SourceScopes.Default),
  Layer.provide([layerArtifacts, layerRevocations]),
  Layer.provide(layerSettings()),
  Layer.provideMerge(
    Layer.mergeAll(
      AgentStore.Default,
      AgentVersionStore.Default,
      AgentWidgetStore.Default,
      ApiKeyStore.Default,
      ChannelStore.Default,
      ConfiguredPartStore.Default,
      EntitlementStore.Default,
      IdempotencyKeyStore.Default,
      IngestionJobStore.Default,
      SourceStore.Default,
      TestCaseStore.Default,
      ToolStore.Default,
      QueueTable.layerTable,
      DerivedKeys.layer([Redacted.make("a master secret of these tests, long enough")])
    )
  ),
  Layer.provide(layerSql),
  Layer.provide(layerScrypt({ log2N: 10, r: 8, p: 1 }))
)

export const decode = Schema.decodeUnknownSync(Configuration)

/** A tenant without agents, and who applies files to it. */
export const empty = Effect.gen(function* () {
  yield* reset
  const { tenantId } = yield* Fixtures.agent()
  const sql = yield* SqlClient.SqlClient
  yield* sql`delete from agents`
  asked.length = 0
  underWay.most = 0
  const by: AuditContext = {
    tenantId: TenantId.make(tenantId),
    actor: { type: "token", id: "tok_deploy" },
    requestId: "req_1"
  }
  return by
})
