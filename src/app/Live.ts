/** The composition root: picks each backend from the settings and wires everything once. */
import * as path from "node:path"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Disk from "../capabilities/ArtifactStore/Disk.ts"
import * as S3 from "../capabilities/ArtifactStore/S3.ts"
import * as SqlAudit from "../capabilities/AuditLog/Sql.ts"
import * as Stripe from "../capabilities/BillingProvider/Stripe.ts"
import * as Scrypt from "../capabilities/Credentials/Scrypt.ts"
import * as ParserWorker from "../capabilities/DocumentParser/Worker.ts"
import * as OfflineEmbedder from "../capabilities/Embedder/Offline.ts"
import * as OpenAiEmbedder from "../capabilities/Embedder/OpenAi.ts"
import * as OtherEmbedders from "../capabilities/Embedder/Others.ts"
import * as QueueTable from "../capabilities/JobQueue/Table.ts"
import * as SqlKeys from "../capabilities/KeyStore/Sql.ts"
import * as MailerNone from "../capabilities/Mailer/None.ts"
import * as ChatCompletions from "../capabilities/ModelRuntime/ChatCompletions.ts"
import * as Extractive from "../capabilities/ModelRuntime/Extractive.ts"
import * as ProviderHttp from "../capabilities/ModelRuntime/ProviderHttp.ts"
import * as Responses from "../capabilities/ModelRuntime/Responses.ts"
import * as Undici from "../capabilities/OutboundHttp/Undici.ts"
import * as SharedPauses from "../capabilities/ProviderPauses/Sql.ts"
import * as RerankHttp from "../capabilities/Reranker/Http.ts"
import * as RerankNone from "../capabilities/Reranker/None.ts"
import * as DerivedKeys from "../capabilities/SecretBox/DerivedKeys.ts"
import * as Tesseract from "../capabilities/TextRecognition/Tesseract.ts"
import * as InProcess from "../capabilities/VectorSearch/InProcess.ts"
import * as Pgvector from "../capabilities/VectorSearch/Pgvector.ts"
import * as Reranked from "../capabilities/VectorSearch/Reranked.ts"
import * as Graph from "../channels/Graph.ts"
import * as GraphFiles from "../channels/GraphFiles.ts"
import { AgentRunStore } from "../store/AgentRuns.ts"
import { AgentStore } from "../store/Agents.ts"
import { ApiKeyStore } from "../store/ApiKeys.ts"
import { ArtifactRows } from "../store/Artifacts.ts"
import { BillingEventStore } from "../store/BillingEvents.ts"
import { ChannelStore } from "../store/Channels.ts"
import { ChannelConversationStore } from "../store/ChannelConversations.ts"
import { ContactStore } from "../store/Contacts.ts"
import { ConversationFeedStore } from "../store/ConversationFeed.ts"
import { ConversationImports } from "../store/ConversationImports.ts"
import { ConversationStates } from "../store/ConversationStates.ts"
import { ConversationStore } from "../store/Conversations.ts"
import { CrawlEntryStore } from "../store/CrawlEntries.ts"
import { layerEmbedded, layerPostgres, migrate, refuseReadOnly } from "../store/Database.ts"
import { EmbeddingProfileStore } from "../store/EmbeddingProfiles.ts"
import { ReindexStore } from "../store/Reindex.ts"
import { EmbeddingStore } from "../store/Embeddings.ts"
import { EmailDeliveryStore } from "../store/EmailDeliveries.ts"
import { EntitlementStore } from "../store/Entitlements.ts"
import { EndUserStore } from "../store/EndUsers.ts"
import { IdempotencyKeyStore } from "../store/IdempotencyKeys.ts"
import { Inbox } from "../store/Inbox.ts"
import { IngestionJobStore } from "../store/IngestionJobs.ts"
import { Instances } from "../store/Instances.ts"
import { InboxViewStore } from "../store/InboxView.ts"
import { KnowledgeStore } from "../store/Knowledge.ts"
import { LegacyMessages } from "../store/LegacyMessages.ts"
import { OutgoingMailStore } from "../store/OutgoingMails.ts"
import { OutboxStore } from "../store/Outbox.ts"
import { RefreshStore } from "../store/Refreshes.ts"
import { SessionStore } from "../store/Sessions.ts"
import { SourceStore } from "../store/Sources.ts"
import { SubscriptionStore } from "../store/Subscriptions.ts"
import { TenantStore } from "../store/Tenants.ts"
import { TeamStore } from "../store/Team.ts"
import { ToolStore } from "../store/Tools.ts"
import { TurnClaimStore } from "../store/TurnClaims.ts"
import { PassageStore } from "../store/Passages.ts"
import { Turns } from "../store/Turns.ts"
import { UnansweredStore } from "../store/Unanswered.ts"
import { UsageStore } from "../store/Usage.ts"
import { UserStore } from "../store/Users.ts"
import { WidgetMessageStore } from "../store/WidgetMessages.ts"
import { WidgetSessionStore } from "../store/WidgetSessions.ts"
import { Accounts } from "../usecases/Accounts.ts"
import { AgentRuns } from "../usecases/AgentRuns.ts"
import { Agents } from "../usecases/Agents.ts"
import { Artifacts } from "../usecases/Artifacts.ts"
import { AuditTrail } from "../usecases/AuditTrail.ts"
import { EndUsers } from "../usecases/EndUsers.ts"
import { Billing, PlanTable } from "../usecases/Billing.ts"
import { Channels } from "../usecases/Channels.ts"
import { ChannelSettings } from "../usecases/channels/ChannelSettings.ts"
import { Intake } from "../usecases/channels/Intake.ts"
import { Inbound } from "../usecases/channels/Inbound.ts"
import { InboundFiles } from "../usecases/channels/InboundFiles.ts"
import * as Outbound from "../usecases/channels/Outbound.ts"
import { ChatRequests } from "../usecases/ChatRequests.ts"
import { ChatTurn } from "../usecases/chat/ChatTurn.ts"
import { Instance } from "../usecases/chat/Instance.ts"
import { LiveRuns } from "../usecases/chat/LiveRuns.ts"
import { RealtimeAccess } from "../usecases/chat/RealtimeAccess.ts"
import { ChatTools } from "../usecases/chat/Tools.ts"
import { TurnSettings } from "../usecases/chat/TurnSettings.ts"
import { Conversations } from "../usecases/Conversations.ts"
import { Crawls } from "../usecases/Crawls.ts"
import { EmailDeliveries } from "../usecases/EmailDeliveries.ts"
import { Embed } from "../usecases/Embed.ts"
import { EmbeddingProfiles } from "../usecases/EmbeddingProfiles.ts"
import { Reindex } from "../usecases/Reindex.ts"
import { ImportConversations } from "../usecases/ImportConversations.ts"
import { Handoff } from "../usecases/Handoff.ts"
import { InboxView } from "../usecases/InboxView.ts"
import { Ingest } from "../usecases/Ingest.ts"
import { AlertRecipient, JobAlerts } from "../usecases/JobAlerts.ts"
import { Keys } from "../usecases/Keys.ts"
import { Ownership } from "../usecases/Ownership.ts"
import { Queues } from "../usecases/Queues.ts"
import { RateLimits, RateLimitSettings } from "../usecases/RateLimits.ts"
import { RealtimeFeed } from "../usecases/RealtimeFeed.ts"
import { LegacyKeys } from "../usecases/LegacyKeys.ts"
import { Refresh } from "../usecases/Refresh.ts"
import { Retrieve } from "../usecases/Retrieve.ts"
import { Sources } from "../usecases/Sources.ts"
import { SourceScopes } from "../usecases/SourceScopes.ts"
import { Subscriptions } from "../usecases/Subscriptions.ts"
import { Takeover } from "../usecases/Takeover.ts"
import { Team } from "../usecases/Team.ts"
import { Tools } from "../usecases/Tools.ts"
import { UsageReport } from "../usecases/UsageReport.ts"
import { Attachments } from "../usecases/widget/Attachments.ts"
import { Callers } from "../usecases/widget/Callers.ts"
import { HostedTurn } from "../usecases/widget/HostedTurn.ts"
import { WidgetSessions } from "../usecases/widget/Sessions.ts"
import { WidgetChat } from "../usecases/widget/WidgetChat.ts"
import type { Settings } from "./Config.ts"
import { groundingChecker } from "./Grounding.ts"
import * as Package from "./Package.ts"
import * as Providers from "./Providers.ts"
import * as DataDirectory from "./DataDirectory.ts"
import * as Redis from "./Redis.ts"
import * as Secrets from "./Secrets.ts"
import { vectorOf } from "./Vector.ts"

/** Bytes of in-process search indexes that are kept; the least recently used agents give way. */
const indexBytes = 512 * 1_048_576
/** Memory for those that pgvector searches too. */
const heldBytes = indexBytes / 2
/** How long running turns may settle after the listener has closed. */
const drain = Duration.seconds(30)

/** The database alone, not migrated. */
export const database = (settings: Settings) =>
  settings.database === null
    ? layerEmbedded({ dataDir: settings.dataDir, seed: Package.seed, thread: Package.worker("database") })
    : layerPostgres(settings.database)

/** An embedded store has one process: what others left running has died with them. */
const ready = (settings: Settings) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      yield* refuseReadOnly
      yield* migrate(Package.migrations)
      if (settings.database !== null) return
      yield* (yield* Instances).leaveAll
      yield* QueueTable.expireLeases
    })
  ).pipe(Layer.provideMerge(Instances.Default), Layer.provideMerge(database(settings)))

const stores = Layer.mergeAll(
  AgentRunStore.Default,
  AgentStore.Default,
  ApiKeyStore.Default,
  ArtifactRows.Default,
  BillingEventStore.Default,
  ChannelConversationStore.Default,
  ChannelStore.Default,
  ContactStore.Default,
  ConversationFeedStore.Default,
  CrawlEntryStore.Default,
  ConversationImports.Default,
  ConversationStates.Default,
  ConversationStore.Default,
  EmbeddingProfileStore.Default,
  ReindexStore.Default,
  EmbeddingStore.Default,
  EmailDeliveryStore.Default,
  EntitlementStore.Default,
  EndUserStore.Default,
  IdempotencyKeyStore.Default,
  IngestionJobStore.Default,
  InboxViewStore.Default,
  KnowledgeStore.Default,
  LegacyMessages.Default,
  OutboxStore.Default,
  OutgoingMailStore.Default,
  RefreshStore.Default,
  SessionStore.Default,
  SourceStore.Default,
  SubscriptionStore.Default,
  TenantStore.Default,
  TeamStore.Default,
  ToolStore.Default,
  TurnClaimStore.Default,
  PassageStore.Default,
  Turns.Default,
  UnansweredStore.Default,
  UsageStore.Default,
  UserStore.Default,
  WidgetMessageStore.Default,
  WidgetSessionStore.Default
)

const offlineEmbedder = OfflineEmbedder.layerUniversalSentenceEncoder({
  script: Package.worker("embed"),
  idleTimeout: "2 minutes"
})

/** Models that agents may still answer with after the configuration names another. */
const otherEmbedders = ({ model }: Settings) =>
  OtherEmbedders.layerOthers((profile) =>
    profile === OfflineEmbedder.profile
      ? Option.some(offlineEmbedder)
      : Option.zipWith(
          OtherEmbedders.modelOf(profile),
          Option.fromNullable(model),
          (named, { apiKey, baseUrl }) => OpenAiEmbedder.layerOpenAi({ apiKey, baseUrl, ...named })
        )
  )

const models = <E, R>(settings: Settings, replace: Layer.Layer<never, E, R>) => {
  const { embedding, model } = settings
  if (model === null) {
    return Layer.mergeAll(Extractive.layerExtractive, offlineEmbedder, otherEmbedders(settings)).pipe(
      Layer.provide(Layer.merge(Providers.exchange, replace))
    )
  }
  const { apiKey, baseUrl, contextWindow, chatModel: defaultModel } = model
  const provider = { apiKey, baseUrl, defaultModel, contextWindow }
  const runtime = model.api === "responses" ? Responses.layer(provider) : ChatCompletions.layer(provider)
  const embedder =
    embedding === null ? offlineEmbedder : OpenAiEmbedder.layerOpenAi({ apiKey, baseUrl, ...embedding })
  return Layer.mergeAll(runtime, embedder, otherEmbedders(settings)).pipe(
    Layer.provide(Layer.mergeAll(Providers.exchange, SharedPauses.layerSql, replace))
  )
}

/** Where originals are kept: the data directory, or a bucket. */
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

/** The client is loaded only where there is a mail server. */
const mailer = ({ mail }: Settings) =>
  mail === null
    ? MailerNone.layerNone
    : Layer.unwrapEffect(
        Effect.map(
          Effect.promise(() => import("../capabilities/Mailer/Smtp.ts")),
          ({ layerSmtp }) => layerSmtp(mail)
        )
      )

const chunkSearch = (settings: Settings) =>
  Layer.unwrapEffect(
    Effect.map(vectorOf(settings), ({ backend }) =>
      backend === "pgvector"
        ? Pgvector.layerPgvector({ maxBytes: heldBytes })
        : InProcess.layerInProcess({ maxBytes: indexBytes })
    )
  )

const vectorSearch = <E, R>(settings: Settings, replace: Layer.Layer<never, E, R>) =>
  Reranked.layerReranked.pipe(
    Layer.provide(chunkSearch(settings)),
    Layer.provide(Layer.merge(reranker(settings), replace))
  )

/** Whatever `replace` has takes the place of ours, for those capabilities too that build on it. */
const capabilities = <E, R>(settings: Settings, replace: Layer.Layer<never, E, R>) =>
  Layer.mergeAll(
    SqlAudit.layerSql,
    SqlKeys.layerSql,
    Redis.layer(settings),
    mailer(settings),
    secretBox,
    Stripe.layerStripe(settings.billing.webhookSecret),
    artifactStore(settings),
    Undici.layerUndici({ allow: settings.fetchAllow ?? [] }),
    ParserWorker.layerWorker({ script: Package.worker("parse") }),
    Tesseract.layerTesseract({ script: Package.worker("recognize") }),
    groundingChecker(settings),
    vectorSearch(settings, replace)
  ).pipe(
    Layer.provideMerge(Layer.mergeAll(Scrypt.layerScrypt(), models(settings, replace), replace)),
    Layer.merge(replace)
  )

const turnSettings = ({ realtimeUrl, runtimeData, turnTimeout }: Settings) =>
  Layer.succeed(TurnSettings, { timeout: turnTimeout, runtimeData, realtimeUrl, drain })

/** Files at the providers of channels. */
const graphFiles = Layer.unwrapEffect(
  Effect.map(ChannelSettings, ({ graphUrl }) =>
    GraphFiles.layerHttp(graphUrl).pipe(Layer.provide(ProviderHttp.layer))
  )
)

/** What goes out through channels. */
const outbound = Layer.unwrapEffect(
  Effect.map(ChannelSettings, ({ graphUrl }) =>
    Outbound.layerPorts.pipe(
      Layer.provideMerge(Outbound.Outbound.Default),
      Layer.provide([
        RealtimeFeed.Default,
        graphFiles,
        Graph.layerHttp(graphUrl).pipe(Layer.provide(ProviderHttp.layer))
      ])
    )
  )
)

const turns = ChatRequests.Default.pipe(
  Layer.provideMerge(Layer.merge(ChatTurn.Default, AgentRuns.Default)),
  Layer.provideMerge(LiveRuns.Default),
  Layer.provideMerge(
    Layer.mergeAll(ChatTools.Default, RealtimeAccess.Default, RealtimeFeed.Default, Instance.Default)
  )
)

/** Who answers conversations, and what channels bring into them. */
const answering = Inbound.Default.pipe(
  Layer.provide([InboundFiles.Default.pipe(Layer.provide(graphFiles)), Attachments.Default]),
  Layer.provideMerge(Layer.merge(Handoff.Default, Takeover.Default.pipe(Layer.provide(Attachments.Default)))),
  Layer.provideMerge(Ownership.Default),
  Layer.provideMerge(turns),
  Layer.provideMerge(outbound)
)

/** The hosted chat and its sessions. */
const widget = Layer.mergeAll(
  HostedTurn.Default,
  InboxView.Default.pipe(Layer.provide(AuditTrail.Default)),
  WidgetChat.Default
).pipe(
  Layer.provideMerge(Layer.mergeAll(Attachments.Default, Callers.Default, WidgetSessions.Default)),
  Layer.provideMerge(answering)
)

/**
 * Everything below the wire: stores, capabilities and use-cases over one database. `replace` holds capabilities of the
 * host's own; it may need the database and the stores.
 */
export const layer = <E = never, R = never>(
  settings: Settings,
  replace: Layer.Layer<never, E, R> = Layer.empty
) =>
  Layer.mergeAll(
    Accounts.Default,
    Agents.Default,
    AuditTrail.Default,
    EndUsers.Default,
    Team.Default,
    Billing.Default,
    Channels.Default,
    Conversations.Default,
    Crawls.Default,
    EmailDeliveries.Default,
    Embed.Default,
    EmbeddingProfiles.Default,
    Reindex.Default,
    ImportConversations.Default,
    Ingest.Default,
    Intake.Default.pipe(Layer.provide(outbound)),
    JobAlerts.Default.pipe(Layer.provide(Layer.succeed(AlertRecipient, settings.alertEmail))),
    Keys.Default,
    LegacyKeys.Default,
    Queues.Default,
    RateLimits.Default.pipe(Layer.provide(Layer.succeed(RateLimitSettings, settings))),
    Refresh.Default.pipe(Layer.provide(Sources.Default)),
    Retrieve.Default,
    Sources.Default,
    Subscriptions.Default,
    Tools.Default,
    UsageReport.Default,
    widget
  ).pipe(
    Layer.provideMerge(Layer.mergeAll(Artifacts.Default, Inbox.Default, SourceScopes.Default)),
    Layer.provideMerge(
      Layer.mergeAll(
        capabilities(settings, replace),
        turnSettings(settings),
        Layer.succeed(PlanTable, settings.billing),
        Layer.succeed(ChannelSettings, settings.channels)
      )
    ),
    Layer.provideMerge(Layer.mergeAll(stores, Secrets.layer(settings))),
    Layer.provideMerge(ready(settings))
  )
