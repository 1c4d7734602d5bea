import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { Crawls } from "../../../usecases/knowledge/Crawls.ts"
import { Api, type GroupHandlers } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"
import * as Cursor from "../../Cursor.ts"

const group = (handlers: GroupHandlers<"hostedCrawl">) =>
  Effect.gen(function* () {
    const crawls = yield* Crawls
    return handlers
      .handle("report", ({ path, urlParams: { limit = 100, cursor, outcome } }) =>
        Effect.gen(function* () {
          const { tenantId } = yield* CurrentUser
          const list = { scope: tenantId, route: "/api/sources/crawl", filter: { id: path.id, outcome } }
          return yield* Cursor.page(list, cursor, (after) =>
            crawls.report({ tenantId }, path.id, { limit, after, outcome })
          )
        })
      )
      .handle("dryRun", ({ payload }) => crawls.dryRun(payload))
  })

export const CrawlHandlers = HttpApiBuilder.group(Api, "hostedCrawl", group)
export const ManagedCrawlHandlers = HttpApiBuilder.group(Api, "managedCrawl", group)
