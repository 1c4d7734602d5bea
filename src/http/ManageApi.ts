/** The groups of the management interface: the same use-cases as the dashboard's, for programs with an access token. */
import * as HttpApi from "@effect/platform/HttpApi"
import { ManagedAgentsApi } from "./hosted/agents/AgentsApi.ts"
import { ManagedAgentVersionsApi } from "./hosted/agents/AgentVersionsApi.ts"
import { ManagedBudgetsApi } from "./hosted/billing/BudgetsApi.ts"
import { ManagedChannelsApi } from "./hosted/channels/ChannelsApi.ts"
import { ManagedExperimentsApi } from "./hosted/agents/ExperimentsApi.ts"
import { ManagedEndUsersApi } from "./hosted/conversations/EndUsersApi.ts"
import { ManagedConversationsApi } from "./hosted/conversations/ConversationsApi.ts"
import { ManagedCrawlApi } from "./hosted/knowledge/CrawlApi.ts"
import { ManagedContentsApi } from "./hosted/knowledge/ContentsApi.ts"
import { ManagedFindingsApi } from "./hosted/knowledge/FindingsApi.ts"
import { ManagedImpactApi } from "./hosted/knowledge/ImpactApi.ts"
import { ManagedCorrectionsApi } from "./hosted/agents/CorrectionsApi.ts"
import { ManagedInboxItemsApi } from "./hosted/conversations/InboxItemsApi.ts"
import { ManagedInboxWorkApi } from "./hosted/conversations/InboxWorkApi.ts"
import { ManagedModelsApi } from "./hosted/agents/ModelsApi.ts"
import { ManagedKeysApi } from "./hosted/accounts/KeysApi.ts"
import { ManagedMemberSessionsApi } from "./hosted/accounts/OpenSessionsApi.ts"
import { ManagedRetentionApi } from "./hosted/accounts/RetentionApi.ts"
import { ManagedSingleSignOnApi } from "./hosted/accounts/SingleSignOnApi.ts"
import { ManagedSourcesApi } from "./hosted/knowledge/SourcesApi.ts"
import { ManagedStartApi } from "./hosted/agents/StartApi.ts"
import { ManagedTakeoverApi } from "./hosted/conversations/TakeoverApi.ts"
import { ManagedTestCasesApi } from "./hosted/agents/TestCasesApi.ts"
import { ManagedToolsApi } from "./hosted/agents/ToolsApi.ts"
import { ManagedUsageApi } from "./hosted/billing/UsageApi.ts"
import { ManagedUsersApi } from "./hosted/accounts/UsersApi.ts"
import { ManagedWebhooksApi } from "./hosted/events/WebhooksApi.ts"
import { ManagedWidgetsApi } from "./hosted/agents/WidgetsApi.ts"
import { ConfigurationApi } from "./manage/ConfigurationApi.ts"
import { ListenersApi } from "./manage/ListenersApi.ts"

/** The source of `/api/manage/v1/openapi.json`. */
export const ManageApi = HttpApi.make("manage")
  .add(ManagedAgentsApi)
  .add(ManagedAgentVersionsApi)
  .add(ConfigurationApi)
  .add(ManagedKeysApi)
  .add(ManagedStartApi)
  .add(ManagedModelsApi)
  .add(ManagedWidgetsApi)
  .add(ManagedToolsApi)
  .add(ManagedTestCasesApi)
  .add(ManagedExperimentsApi)
  .add(ManagedChannelsApi)
  .add(ManagedSourcesApi)
  .add(ManagedCrawlApi)
  .add(ManagedContentsApi)
  .add(ManagedFindingsApi)
  .add(ManagedImpactApi)
  .add(ManagedCorrectionsApi)
  .add(ManagedTakeoverApi)
  .add(ManagedEndUsersApi)
  .add(ManagedConversationsApi)
  .add(ManagedInboxWorkApi)
  .add(ManagedInboxItemsApi)
  .add(ManagedUsageApi)
  .add(ManagedBudgetsApi)
  .add(ManagedUsersApi)
  .add(ManagedMemberSessionsApi)
  .add(ManagedSingleSignOnApi)
  .add(ManagedRetentionApi)
  .add(ManagedWebhooksApi)
  .add(ListenersApi)
