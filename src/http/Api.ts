/** All groups of endpoints, declarations only. Servers, clients and documentation derive from this. */
import * as HttpApi from "@effect/platform/HttpApi"
import type * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import type * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as OpenApi from "@effect/platform/OpenApi"
import { AgentsApi } from "./hosted/agents/AgentsApi.ts"
import { AgentVersionsApi } from "./hosted/agents/AgentVersionsApi.ts"
import { AuditApi } from "./hosted/accounts/AuditApi.ts"
import { HostedChatApi, RemovedRoutesApi } from "./hosted/chat/ChatApi.ts"
import { BudgetsApi } from "./hosted/billing/BudgetsApi.ts"
import { ChannelsApi } from "./hosted/channels/ChannelsApi.ts"
import { EmailLogsApi } from "./hosted/accounts/EmailLogsApi.ts"
import { ExperimentsApi } from "./hosted/agents/ExperimentsApi.ts"
import { EndUsersApi } from "./hosted/conversations/EndUsersApi.ts"
import { HostedConversationsApi } from "./hosted/conversations/ConversationsApi.ts"
import { HostedCrawlApi } from "./hosted/knowledge/CrawlApi.ts"
import { ContentsApi } from "./hosted/knowledge/ContentsApi.ts"
import { FindingsApi } from "./hosted/knowledge/FindingsApi.ts"
import { ImpactApi } from "./hosted/knowledge/ImpactApi.ts"
import { CorrectionsApi } from "./hosted/agents/CorrectionsApi.ts"
import { InsightsApi } from "./hosted/conversations/InsightsApi.ts"
import { InboxItemsApi } from "./hosted/conversations/InboxItemsApi.ts"
import { InboxWorkApi } from "./hosted/conversations/InboxWorkApi.ts"
import { InboxViewApi } from "./hosted/conversations/InboxViewApi.ts"
import { ModelsApi } from "./hosted/agents/ModelsApi.ts"
import { KeysApi } from "./hosted/accounts/KeysApi.ts"
import { MemberSessionsApi, OpenSessionsApi } from "./hosted/accounts/OpenSessionsApi.ts"
import { ReplaysApi } from "./hosted/chat/ReplaysApi.ts"
import { RetentionApi } from "./hosted/accounts/RetentionApi.ts"
import { SdkApi } from "./hosted/chat/SdkApi.ts"
import { StartApi } from "./hosted/agents/StartApi.ts"
import { SessionsApi } from "./hosted/accounts/SessionsApi.ts"
import { HostedSourcesApi } from "./hosted/knowledge/SourcesApi.ts"
import { TakeoverApi } from "./hosted/conversations/TakeoverApi.ts"
import { TestCasesApi } from "./hosted/agents/TestCasesApi.ts"
import { ToolSignInsApi, ToolsApi } from "./hosted/agents/ToolsApi.ts"
import { HostedUsageApi } from "./hosted/billing/UsageApi.ts"
import { WebhooksApi } from "./hosted/events/WebhooksApi.ts"
import { WidgetsApi } from "./hosted/agents/WidgetsApi.ts"
import { PasskeySignInApi, PasskeysApi } from "./hosted/accounts/passkeys/PasskeysApi.ts"
import { ScimTokensApi, SignOnApi, SingleSignOnApi } from "./hosted/accounts/SingleSignOnApi.ts"
import { TokensApi } from "./hosted/accounts/TokensApi.ts"
import { PasswordsApi, UsersApi } from "./hosted/accounts/UsersApi.ts"
import { DomainsApi } from "./operator/DomainsApi.ts"
import { ImportsApi } from "./operator/ImportsApi.ts"
import { MovesApi } from "./operator/MovesApi.ts"
import { QueuesApi } from "./operator/QueuesApi.ts"
import { RecoveryApi } from "./operator/RecoveryApi.ts"
import { TenantsApi } from "./operator/TenantsApi.ts"
import { ManageApi } from "./ManageApi.ts"
import { PublicApi } from "./PublicApi.ts"
import { EmailApi } from "./webhooks/EmailApi.ts"
import { BillingApi } from "./webhooks/BillingApi.ts"
import { MessagingApi } from "./webhooks/MessagingApi.ts"
import { SystemApi } from "./system/SystemApi.ts"

export { PublicApi }

/** The API of this process. */
export const Api = HttpApi.make("spoke")
  .addHttpApi(PublicApi)
  .add(HostedChatApi)
  .add(RemovedRoutesApi)
  .add(SdkApi)
  .add(ReplaysApi)
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
  .add(HostedCrawlApi)
  .add(ContentsApi)
  .add(FindingsApi)
  .add(ImpactApi)
  .add(CorrectionsApi)
  .add(KeysApi)
  .add(StartApi)
  .add(ModelsApi)
  .add(WidgetsApi)
  .add(TokensApi)
  .add(ChannelsApi)
  .add(ToolsApi)
  .add(ToolSignInsApi)
  .add(TestCasesApi)
  .add(ExperimentsApi)
  .add(WebhooksApi)
  .add(HostedSourcesApi)
  .add(HostedUsageApi)
  .add(BudgetsApi)
  .add(UsersApi)
  .add(PasswordsApi)
  .add(AuditApi)
  .add(EmailLogsApi)
  .add(RetentionApi)
  .add(EndUsersApi)
  .add(HostedConversationsApi)
  .add(InboxViewApi)
  .add(InboxWorkApi)
  .add(InboxItemsApi)
  .add(InsightsApi)
  .add(TakeoverApi)
  .addHttpApi(ManageApi)
  .add(TenantsApi)
  .add(DomainsApi)
  .add(RecoveryApi)
  .add(ImportsApi)
  .add(MovesApi)
  .add(QueuesApi)
  .add(MessagingApi)
  .add(BillingApi)
  .add(EmailApi)
  .add(SystemApi)
  .annotate(OpenApi.Title, "Spoke")
  .annotate(OpenApi.Version, "1")

type Of<A> =
  A extends HttpApi.HttpApi<infer _Id, infer Groups, infer E, infer R>
    ? { readonly groups: Groups; readonly error: E; readonly needs: R }
    : never

/** The handlers of a group. Lets one function serve two groups with the same endpoints. */
export type GroupHandlers<Name extends string> = HttpApiBuilder.Handlers.FromGroup<
  Of<typeof Api>["error"],
  Of<typeof Api>["needs"],
  HttpApiGroup.HttpApiGroup.WithName<Of<typeof Api>["groups"], Name>
>
