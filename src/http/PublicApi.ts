/** The groups of the public REST API, apart from all others: a client that derives from it carries nothing else. */
import * as HttpApi from "@effect/platform/HttpApi"
import { AgentRunsApi } from "./public/chat/AgentRunsApi.ts"
import { ChatApi } from "./public/chat/ChatApi.ts"
import { CompletionsApi } from "./public/chat/CompletionsApi.ts"
import { ConversationsApi } from "./public/conversations/ConversationsApi.ts"
import { CrawlApi } from "./public/knowledge/CrawlApi.ts"
import { IngestionJobsApi } from "./public/knowledge/IngestionJobsApi.ts"
import { RetrieveApi } from "./public/knowledge/RetrieveApi.ts"
import { SourcesApi } from "./public/knowledge/SourcesApi.ts"
import { UsageApi } from "./public/billing/UsageApi.ts"
import { VisitorTokensApi } from "./public/chat/VisitorTokensApi.ts"

/** The public REST API: what the typed client and `/openapi.json` are made from. */
export const PublicApi = HttpApi.make("public")
  .add(ChatApi)
  .add(CompletionsApi)
  .add(RetrieveApi)
  .add(CrawlApi)
  .add(SourcesApi)
  .add(IngestionJobsApi)
  .add(ConversationsApi)
  .add(AgentRunsApi)
  .add(UsageApi)
  .add(VisitorTokensApi)
