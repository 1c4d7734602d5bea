/** Every store on the database. */
import * as Layer from "effect/Layer"
import { IdempotencyKeyStore } from "../store/IdempotencyKeys.ts"
import { AccessTokenStore } from "../store/accounts/AccessTokens.ts"
import { ApiKeyStore } from "../store/accounts/ApiKeys.ts"
import { EmailDeliveryStore } from "../store/accounts/EmailDeliveries.ts"
import { ManageAnswerStore } from "../store/accounts/ManageAnswers.ts"
import { OutgoingMailStore } from "../store/accounts/OutgoingMails.ts"
import { OtherModelCallStore } from "../store/billing/OtherModelCalls.ts"
import { BudgetStore } from "../store/billing/Budgets.ts"
import { ReportedGapStore } from "../store/conversations/ReportedGaps.ts"
import { PasskeyStore } from "../store/accounts/Passkeys.ts"
import { ExpiredRows } from "../store/accounts/ExpiredRows.ts"
import { RetentionStore } from "../store/accounts/Retention.ts"
import { ScimStore } from "../store/accounts/Scim.ts"
import { ScimTokenStore } from "../store/accounts/ScimTokens.ts"
import { SessionStore } from "../store/accounts/Sessions.ts"
import { SingleSignOnStore } from "../store/accounts/SingleSignOn.ts"
import { TeamStore } from "../store/accounts/Team.ts"
import { TenantStore } from "../store/accounts/Tenants.ts"
import { UserStore } from "../store/accounts/Users.ts"
import { AgentStore } from "../store/agents/Agents.ts"
import { AgentVersionStore } from "../store/agents/AgentVersions.ts"
import { ConfiguredPartStore } from "../store/agents/ConfiguredParts.ts"
import { ExperimentStore } from "../store/agents/Experiments.ts"
import { PublishThresholdStore } from "../store/agents/PublishThresholds.ts"
import { CorrectionStore } from "../store/agents/Corrections.ts"
import { TestCaseStore } from "../store/agents/TestCases.ts"
import { AgentWidgetStore } from "../store/agents/Widgets.ts"
import { StartStore } from "../store/agents/Starts.ts"
import { ToolConnectionStore } from "../store/agents/ToolConnections.ts"
import { ToolStore } from "../store/agents/Tools.ts"
import { BillingEventStore } from "../store/billing/BillingEvents.ts"
import { EntitlementStore } from "../store/billing/Entitlements.ts"
import { StorageStore } from "../store/billing/Storage.ts"
import { SubscriptionStore } from "../store/billing/Subscriptions.ts"
import { UsageStore } from "../store/billing/Usage.ts"
import { ChannelConversationStore } from "../store/channels/ChannelConversations.ts"
import { ChannelStore } from "../store/channels/Channels.ts"
import { ContactStore } from "../store/channels/Contacts.ts"
import { OutboxStore } from "../store/channels/Outbox.ts"
import { UnansweredStore } from "../store/channels/Unanswered.ts"
import { AgentRunStore } from "../store/chat/AgentRuns.ts"
import { RecordedRunStore } from "../store/chat/RecordedRuns.ts"
import { TurnClaimStore } from "../store/chat/TurnClaims.ts"
import { Turns } from "../store/chat/Turns.ts"
import { UnusedPassages } from "../store/chat/UnusedPassages.ts"
import { TestConversationStore } from "../store/chat/TestConversations.ts"
import { WidgetMessageStore } from "../store/chat/WidgetMessages.ts"
import { WidgetSessionStore } from "../store/chat/WidgetSessions.ts"
import { ConversationFeedStore } from "../store/conversations/ConversationFeed.ts"
import { ConversationImports } from "../store/conversations/ConversationImports.ts"
import { ConversationStates } from "../store/conversations/ConversationStates.ts"
import { ConversationStore } from "../store/conversations/Conversations.ts"
import { EndUserStore } from "../store/conversations/EndUsers.ts"
import { InboxItemStore } from "../store/conversations/InboxItems.ts"
import { InboxListStore } from "../store/conversations/InboxList.ts"
import { InboxWorkStore } from "../store/conversations/InboxWork.ts"
import { InboxViewStore } from "../store/conversations/InboxView.ts"
import { InsightStore } from "../store/conversations/Insights.ts"
import { LegacyMessages } from "../store/conversations/LegacyMessages.ts"
import { WebhookDeliveryStore } from "../store/events/WebhookDeliveries.ts"
import { WebhookEndpointStore } from "../store/events/WebhookEndpoints.ts"
import { WebhookListenerStore } from "../store/events/WebhookListeners.ts"
import { ArtifactRows } from "../store/knowledge/ArtifactRows.ts"
import { ContentStore } from "../store/knowledge/Contents.ts"
import { CrawlEntryStore } from "../store/knowledge/CrawlEntries.ts"
import { EmbeddingProfileStore } from "../store/knowledge/EmbeddingProfiles.ts"
import { EmbeddingStore } from "../store/knowledge/Embeddings.ts"
import { FindingStore } from "../store/knowledge/Findings.ts"
import { ImpactStore } from "../store/knowledge/Impact.ts"
import { IngestionJobStore } from "../store/knowledge/IngestionJobs.ts"
import { KnowledgeStore } from "../store/knowledge/Knowledge.ts"
import { PassageStore } from "../store/knowledge/Passages.ts"
import { RefreshStore } from "../store/knowledge/Refreshes.ts"
import { ReindexStore } from "../store/knowledge/Reindex.ts"
import { VectorCopiesStore } from "../store/knowledge/VectorCopies.ts"
import { VectorEncodingStore } from "../store/knowledge/VectorEncoding.ts"
import { VectorIndexStore } from "../store/knowledge/VectorIndexes.ts"
import { ReadingStore } from "../store/knowledge/Readings.ts"
import { SourceStore } from "../store/knowledge/Sources.ts"

export const stores = Layer.mergeAll(
  AccessTokenStore.Default,
  AgentRunStore.Default,
  AgentStore.Default,
  AgentVersionStore.Default,
  AgentWidgetStore.Default,
  ApiKeyStore.Default,
  ArtifactRows.Default,
  BillingEventStore.Default,
  ChannelConversationStore.Default,
  ChannelStore.Default,
  ContactStore.Default,
  ConversationFeedStore.Default,
  ContentStore.Default,
  CrawlEntryStore.Default,
  ConversationImports.Default,
  ConversationStates.Default,
  ConversationStore.Default,
  EmbeddingProfileStore.Default,
  ReadingStore.Default,
  ReindexStore.Default,
  VectorCopiesStore.Default,
  VectorEncodingStore.Default,
  VectorIndexStore.Default,
  EmbeddingStore.Default,
  EmailDeliveryStore.Default,
  EntitlementStore.Default,
  EndUserStore.Default,
  ExperimentStore.Default,
  ExpiredRows.Default,
  IdempotencyKeyStore.Default,
  IngestionJobStore.Default,
  InboxViewStore.Default,
  InboxItemStore.Default,
  InboxListStore.Default,
  InboxWorkStore.Default,
  InsightStore.Default,
  CorrectionStore.Default,
  FindingStore.Default,
  ImpactStore.Default,
  KnowledgeStore.Default,
  LegacyMessages.Default,
  OutboxStore.Default,
  OutgoingMailStore.Default,
  BudgetStore.Default,
  OtherModelCallStore.Default,
  ReportedGapStore.Default,
  RetentionStore.Default,
  RecordedRunStore.Default,
  RefreshStore.Default,
  PasskeyStore.Default,
  ScimStore.Default,
  ScimTokenStore.Default,
  SessionStore.Default,
  SingleSignOnStore.Default,
  SourceStore.Default,
  StartStore.Default,
  StorageStore.Default,
  SubscriptionStore.Default,
  TenantStore.Default,
  TeamStore.Default,
  ConfiguredPartStore.Default,
  TestCaseStore.Default,
  ToolConnectionStore.Default,
  ToolStore.Default,
  TurnClaimStore.Default,
  PassageStore.Default,
  PublishThresholdStore.Default,
  Turns.Default,
  UnansweredStore.Default,
  UnusedPassages.Default,
  UsageStore.Default,
  UserStore.Default,
  WebhookDeliveryStore.Default,
  ManageAnswerStore.Default,
  WebhookEndpointStore.Default,
  WebhookListenerStore.Default,
  TestConversationStore.Default,
  WidgetMessageStore.Default,
  WidgetSessionStore.Default
)
