/** The groups of the public REST API, apart from all others, so that a client derived from it contains nothing else. */
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

/** The public REST API. The typed client and `/openapi.json` derive from it. */
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
