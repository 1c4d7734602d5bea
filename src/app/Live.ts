/** The composition root: selects each backend by the settings and wires everything once. */
import * as path from "node:path"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Disk from "../capabilities/ArtifactStore/Disk.ts"
import * as S3 from "../capabilities/ArtifactStore/S3.ts"
import * as SqlAudit from "../capabilities/AuditLog/Sql.ts"
import * as Stripe from "../capabilities/BillingProvider/Stripe.ts"
import * as Scrypt from "../capabilities/Credentials/Scrypt.ts"
import * as WebAuthn from "../capabilities/Credentials/WebAuthn.ts"
import * as ParserWorker from "../capabilities/DocumentParser/Worker.ts"
import * as OfflineEmbedder from "../capabilities/Embedder/Offline.ts"
import * as OpenAiEmbedder from "../capabilities/Embedder/OpenAi.ts"
import * as OtherEmbedders from "../capabilities/Embedder/Others.ts"
import * as QueueTable from "../capabilities/JobQueue/Table.ts"
import * as SqlKeys from "../capabilities/KeyStore/Sql.ts"
import * as OpenIdConnect from "../capabilities/IdentityProvider/OpenIdConnect.ts"
import * as ToolOAuth from "../capabilities/IdentityProvider/ToolOAuth.ts"
import * as Extractive from "../capabilities/ModelRuntime/extractive/Extractive.ts"
import * as ProviderHttp from "../capabilities/ModelRuntime/ProviderHttp.ts"
import * as Undici from "../capabilities/OutboundHttp/Undici.ts"
import * as SharedPauses from "../capabilities/ProviderBackoff/Sql.ts"
import * as RerankHttp from "../capabilities/Reranker/Http.ts"
import * as RerankNone from "../capabilities/Reranker/None.ts"
import * as DerivedKeys from "../capabilities/SecretBox/DerivedKeys.ts"
import * as BuiltInTools from "../capabilities/ToolSources/BuiltIn.ts"
import * as Tesseract from "../capabilities/TextRecognition/Tesseract.ts"
import * as InProcess from "../capabilities/VectorSearch/InProcess.ts"
import { measuredSearch } from "../capabilities/VectorSearch/Measured.ts"
import * as Pgvector from "../capabilities/VectorSearch/Pgvector.ts"
import * as Reranked from "../capabilities/VectorSearch/Reranked.ts"
import * as WithFeedback from "../capabilities/VectorSearch/WithFeedback.ts"
import * as BuiltInChannels from "../channels/BuiltIn.ts"
import * as RegisteredReaders from "../readers/connectors/Registered.ts"
import {
  addWeeks,
  layerEmbedded,
  layerPostgres,
  isolateTenants,
  migrate,
  refuseReadOnly
} from "../store/Database.ts"
import { InboundEvents } from "../store/channels/InboundEvents.ts"
import { ProcessLeases } from "../store/chat/ProcessLeases.ts"
import { AccessTokens } from "../usecases/accounts/AccessTokens.ts"
import { RepeatedRequests } from "../usecases/accounts/RepeatedRequests.ts"
import { Accounts } from "../usecases/accounts/Accounts.ts"
import { Agents } from "../usecases/agents/Agents.ts"
import { AgentVersions } from "../usecases/agents/AgentVersions.ts"
import { Corrections } from "../usecases/agents/Corrections.ts"
import { CriterionJudge } from "../usecases/agents/CriterionJudge.ts"
import { Experiments } from "../usecases/agents/Experiments.ts"
import { ExperimentWork } from "../usecases/agents/ExperimentWork.ts"
import { PublishGate } from "../usecases/agents/PublishGate.ts"
import { Configurations } from "../usecases/agents/Configurations.ts"
import { ConfiguredChannels } from "../usecases/agents/ConfiguredChannels.ts"
import { ConfiguredParts } from "../usecases/agents/ConfiguredParts.ts"
import { Artifacts } from "../usecases/knowledge/Artifacts.ts"
import { AuditTrail } from "../usecases/accounts/AuditTrail.ts"
import { EndUsers } from "../usecases/conversations/EndUsers.ts"
import { Billing, PlanTable } from "../usecases/billing/Billing.ts"
import { Channels } from "../usecases/channels/Channels.ts"
import { ChannelProof } from "../usecases/channels/ChannelProof.ts"
import { ChannelSettings } from "../usecases/channels/ChannelSettings.ts"
import { WebhookIngress } from "../usecases/channels/WebhookIngress.ts"
import { Replays } from "../usecases/chat/replay/Replays.ts"
import { Conversations } from "../usecases/conversations/Conversations.ts"
import { Crawls } from "../usecases/knowledge/Crawls.ts"
import { EmailDeliveries } from "../usecases/accounts/EmailDeliveries.ts"
import { ConnectorPass } from "../usecases/knowledge/ConnectorPass.ts"
import { ConnectorSettings } from "../usecases/knowledge/ConnectorSettings.ts"
import { Embed } from "../usecases/knowledge/Embed.ts"
import { EmbeddingProfiles } from "../usecases/knowledge/EmbeddingProfiles.ts"
import { Reindex } from "../usecases/knowledge/Reindex.ts"
import { VectorStorage } from "../usecases/knowledge/VectorStorage.ts"
import { ImportConversations } from "../usecases/conversations/ImportConversations.ts"
import { Contents } from "../usecases/knowledge/Contents.ts"
import { Findings } from "../usecases/knowledge/Findings.ts"
import { Impact } from "../usecases/knowledge/Impact.ts"
import { Insights } from "../usecases/conversations/Insights.ts"
import { InboxItems } from "../usecases/conversations/InboxItems.ts"
import { Ingest } from "../usecases/knowledge/Ingest.ts"
import { AlertRecipient, JobAlerts } from "../usecases/operations/JobAlerts.ts"
import { Keys } from "../usecases/accounts/Keys.ts"
import { Queues } from "../usecases/operations/Queues.ts"
import { RateLimits, RateLimitSettings } from "../usecases/billing/RateLimits.ts"
import { LegacyKeys } from "../usecases/conversations/LegacyKeys.ts"
import { Refresh } from "../usecases/knowledge/Refresh.ts"
import { Retrieve } from "../usecases/knowledge/Retrieve.ts"
import { Sources } from "../usecases/knowledge/Sources.ts"
import { SourceScopes } from "../usecases/knowledge/SourceScopes.ts"
import { Subscriptions } from "../usecases/billing/Subscriptions.ts"
import { OpenSessions } from "../usecases/accounts/OpenSessions.ts"
import { Passkeys } from "../usecases/accounts/Passkeys.ts"
import { Scim } from "../usecases/accounts/Scim.ts"
import { ScimAccess } from "../usecases/accounts/ScimAccess.ts"
import { SignOn } from "../usecases/accounts/SignOn.ts"
import { SingleSignOn } from "../usecases/accounts/SingleSignOn.ts"
import { Team } from "../usecases/accounts/Team.ts"
import { TestCases } from "../usecases/agents/TestCases.ts"
import { Starts } from "../usecases/agents/Starts.ts"
import { Widgets } from "../usecases/agents/Widgets.ts"
import { ToolConnections } from "../usecases/agents/ToolConnections.ts"
import { ToolRevocations } from "../usecases/agents/ToolRevocations.ts"
import { ToolTokens } from "../usecases/agents/ToolTokens.ts"
import { Tools } from "../usecases/agents/Tools.ts"
import { WebhookDelivery } from "../usecases/events/WebhookDelivery.ts"
import { WebhookEndpoints } from "../usecases/events/WebhookEndpoints.ts"
import { WebhookListeners } from "../usecases/events/WebhookListeners.ts"
import { GapSearch } from "../usecases/conversations/GapSearch.ts"
import { OtherModelCalls } from "../usecases/billing/OtherModelCalls.ts"
import { Budgets } from "../usecases/billing/Budgets.ts"
import { InstallationRetention, RetentionLimits } from "../usecases/accounts/Retention.ts"
import { StorageCount } from "../usecases/billing/StorageCount.ts"
import { UsageReport } from "../usecases/billing/UsageReport.ts"
import type { Settings } from "./config/Config.ts"
import { groundingChecker } from "./Grounding.ts"
import * as Mail from "./Mail.ts"
import * as Package from "./Package.ts"
import { stores } from "./Stores.ts"
import * as Providers from "./Providers.ts"
import * as DataDirectory from "./DataDirectory.ts"
import * as Redis from "./Redis.ts"
import * as Secrets from "./config/Secrets.ts"
import * as Turns from "./Turns.ts"
import { vectorOf } from "./Vector.ts"

/** Maximum bytes of in-process search indexes. The least recently used ones are removed first. */
const indexBytes = 512 * 1_048_576
/** Maximum bytes of the indexes that are kept in addition to pgvector. */
const heldBytes = indexBytes / 2

/** The database only, without migrations. */
export const database = (settings: Settings) =>
  settings.database === null
    ? layerEmbedded({
        dataDir: settings.dataDir,
        seed: Package.seed,
        thread: Package.worker("database"),
        tenantRole: settings.tenantRole
      })
    : layerPostgres({ ...settings.database, tenantRole: settings.tenantRole })

/** An embedded database has one process: runs left by an earlier process are dead. */
const ready = (settings: Settings) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      yield* refuseReadOnly
      yield* migrate(Package.migrations)
      if (settings.tenantRole !== null) yield* isolateTenants(settings.tenantRole)
      // Before the first turn of a process that has not run for weeks. Else the sweep makes them.
      yield* Effect.catchAll(addWeeks, (error) =>
        Effect.logWarning("The next weeks of traces could not be made", error)
      )
      if (settings.database !== null) return
      yield* (yield* ProcessLeases).leaveAll
      yield* QueueTable.expireLeases
    })
  ).pipe(Layer.provideMerge(ProcessLeases.Default), Layer.provideMerge(database(settings)))

const offlineEmbedder = OfflineEmbedder.layerUniversalSentenceEncoder({
  script: Package.worker("embed"),
  idleTimeout: "2 minutes"
})

/** Embedders of models that agents may still use after the configured model has changed. */
const otherEmbedders = ({ model }: Settings) =>
  OtherEmbedders.layerOthers((profile) =>
    profile === OfflineEmbedder.profile
      ? Option.some(offlineEmbedder)
      : Option.zipWith(
          OtherEmbedders.modelOf(profile),
          Option.fromNullable(model),
          (named, { apiKey, baseUrl, provider }) =>
            OpenAiEmbedder.layerOpenAi({ apiKey, baseUrl, provider, ...named })
        )
  )

const models = <E, R>(settings: Settings, replace: Layer.Layer<never, E, R>) => {
  const { embedding, model } = settings
  if (model === null) {
    return Layer.mergeAll(Extractive.layerExtractive, offlineEmbedder, otherEmbedders(settings)).pipe(
      Layer.provide(Layer.merge(Providers.exchange, replace))
    )
  }
  const { apiKey, baseUrl, provider } = model
  const runtime = Providers.chatRuntime(model, settings)
  const embedder =
    embedding === null
      ? offlineEmbedder
      : OpenAiEmbedder.layerOpenAi({ apiKey, baseUrl, provider, ...embedding })
  return Layer.mergeAll(runtime, embedder, otherEmbedders(settings)).pipe(
    Layer.provide(Layer.mergeAll(Providers.exchange, SharedPauses.layerSql, replace))
  )
}

/** The store of originals: the data directory, or a bucket. */
export const artifactStore = ({ artifacts, dataDir }: Settings) =>
  artifacts === null
    ? Layer.unwrapEffect(
        Effect.as(DataDirectory.make(dataDir), Disk.layerDisk(path.join(dataDir, "artifacts")))
      )
    : S3.layerS3(artifacts).pipe(Layer.provide(ProviderHttp.layer))

const secretBox = Layer.unwrapEffect(Effect.map(Secrets.Secrets, ({ masters }) => DerivedKeys.layer(masters)))

const reranker = ({ rerank }: Settings) =>
  rerank === null
    ? RerankNone.layerNone
    : RerankHttp.layerHttp(rerank).pipe(Layer.provide(ProviderHttp.layer))

const chunkSearch = (settings: Settings) =>
  Layer.unwrapEffect(
    Effect.map(vectorOf(settings), ({ backend }) =>
      backend === "pgvector"
        ? Pgvector.layerPgvector({ maxBytes: heldBytes })
        : InProcess.layerInProcess({ maxBytes: indexBytes })
    )
  )

const vectorSearch = <E, R>(settings: Settings, replace: Layer.Layer<never, E, R>) =>
  measuredSearch.pipe(
    Layer.provide(Reranked.layerReranked),
    Layer.provide(WithFeedback.layerWithFeedback),
    Layer.provide(chunkSearch(settings)),
    Layer.provide(Layer.merge(reranker(settings), replace))
  )

/** The layers of `replace` replace the defaults, also for the capabilities that depend on them. */
const capabilities = <E, R>(settings: Settings, replace: Layer.Layer<never, E, R>) =>
  Layer.mergeAll(
    SqlAudit.layerSql,
    BuiltInChannels.layerHttp(settings.channels).pipe(Layer.provide(ProviderHttp.layer)),
    SqlKeys.layerSql,
    Redis.layer(settings),
    Mail.mailer(settings),
    secretBox,
    Stripe.layerStripe(settings.billing.webhookSecret),
    artifactStore(settings),
    OpenIdConnect.layerOpenIdConnect,
    ToolOAuth.layerToolOAuth,
    ParserWorker.layerWorker({ script: Package.worker("parse") }),
    Tesseract.layerTesseract({ script: Package.worker("recognize") }),
    groundingChecker(settings),
    vectorSearch(settings, replace),
    RegisteredReaders.layer,
    BuiltInTools.layer
  ).pipe(
    Layer.provideMerge(
      Layer.mergeAll(
        Scrypt.layerScrypt(),
        WebAuthn.layerWebAuthn,
        Undici.layerUndici({ allow: settings.fetchAllow ?? [] }),
        Mail.submission(settings, replace),
        models(settings, replace),
        replace
      )
    ),
    Layer.merge(replace)
  )

const channels = Channels.Default.pipe(Layer.provide(ChannelProof.Default))
const widgets = Widgets.Default.pipe(Layer.provide(Keys.Default))

/** Everything below HTTP on one database. `replace` has capabilities of the host; it may use the stores. */
export const layer = <E = never, R = never>(
  settings: Settings,
  replace: Layer.Layer<never, E, R> = Layer.empty
) =>
  Layer.mergeAll(
    AccessTokens.Default,
    RepeatedRequests.Default,
    Accounts.Default,
    Agents.Default,
    AgentVersions.Default,
    AuditTrail.Default,
    EndUsers.Default,
    SignOn.Default.pipe(Layer.provide(AuditTrail.Default)),
    SingleSignOn.Default,
    OpenSessions.Default,
    Passkeys.Default,
    Scim.Default,
    ScimAccess.Default,
    Team.Default,
    Billing.Default,
    channels,
    Configurations.Default.pipe(
      Layer.provide(ConfiguredParts.Default),
      Layer.provide(ConfiguredChannels.Default),
      Layer.provide([Agents.Default, channels, Sources.Default, TestCases.Default, Tools.Default, widgets])
    ),
    Conversations.Default,
    Crawls.Default,
    EmailDeliveries.Default,
    Embed.Default,
    EmbeddingProfiles.Default,
    Reindex.Default,
    VectorStorage.Default,
    ImportConversations.Default,
    Experiments.Default,
    ExperimentWork.Default.pipe(Layer.provide(Layer.merge(CriterionJudge.Default, Replays.Default))),
    Corrections.Default.pipe(
      Layer.provide(Layer.mergeAll(Experiments.Default, Insights.Default, Sources.Default, TestCases.Default))
    ),
    Contents.Default,
    Findings.Default,
    Impact.Default.pipe(Layer.provide(Experiments.Default)),
    InboxItems.Default,
    Ingest.Default.pipe(Layer.provide(ConnectorPass.Default)),
    GapSearch.Default.pipe(Layer.provideMerge(Insights.Default)),
    WebhookIngress.Default.pipe(Layer.provide(Turns.outbound)),
    JobAlerts.Default.pipe(Layer.provide(Layer.succeed(AlertRecipient, settings.alertEmail))),
    Keys.Default,
    LegacyKeys.Default,
    PublishGate.Default,
    Queues.Default,
    RateLimits.Default.pipe(Layer.provide(Layer.succeed(RateLimitSettings, settings))),
    Refresh.Default.pipe(Layer.provide(Sources.Default)),
    Replays.Default,
    Budgets.Default,
    RetentionLimits.Default.pipe(Layer.provide(Layer.succeed(InstallationRetention, settings.retention))),
    Retrieve.Default,
    Sources.Default,
    StorageCount.Default,
    Subscriptions.Default,
    TestCases.Default,
    Starts.Default,
    Tools.Default,
    ToolConnections.Default,
    UsageReport.Default,
    widgets,
    WebhookDelivery.Default,
    WebhookEndpoints.Default,
    WebhookListeners.Default,
    Turns.layer
  ).pipe(
    Layer.provideMerge(
      Layer.mergeAll(
        Artifacts.Default,
        ConnectorSettings.Default,
        InboundEvents.Default,
        OtherModelCalls.Default,
        SourceScopes.Default,
        Layer.provideMerge(ToolRevocations.Default, ToolTokens.Default)
      )
    ),
    Layer.provideMerge(
      Layer.mergeAll(
        capabilities(settings, replace),
        Turns.settings(settings),
        Layer.succeed(PlanTable, settings.billing),
        Layer.succeed(ChannelSettings, settings.channels)
      )
    ),
    Layer.provideMerge(Layer.mergeAll(stores, Secrets.layer(settings))),
    Layer.provideMerge(ready(settings))
  )
