/** The groups of the public REST API, apart from all others: a client that derives from it carries nothing else. */
import * as HttpApi from "@effect/platform/HttpApi"
import { AgentRunsApi } from "./public/AgentRunsApi.ts"
import { ChatApi } from "./public/ChatApi.ts"
import { CompletionsApi } from "./public/CompletionsApi.ts"
import { ConversationsApi } from "./public/ConversationsApi.ts"
import { CrawlApi } from "./public/CrawlApi.ts"
import { IngestionJobsApi } from "./public/IngestionJobsApi.ts"
import { RetrieveApi } from "./public/RetrieveApi.ts"
import { SourcesApi } from "./public/SourcesApi.ts"
import { UsageApi } from "./public/UsageApi.ts"

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
