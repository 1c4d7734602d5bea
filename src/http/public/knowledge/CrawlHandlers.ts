import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { Crawls } from "../../../usecases/knowledge/Crawls.ts"
import { Api } from "../../Api.ts"
import { CurrentKey } from "../../Auth.ts"
import * as Cursor from "../../Cursor.ts"

export const layer = HttpApiBuilder.group(Api, "crawl", (handlers) =>
  Effect.gen(function* () {
    const crawls = yield* Crawls
    return handlers
      .handle("report", ({ path, urlParams: { limit = 100, cursor, outcome } }) =>
        Effect.gen(function* () {
          const key = yield* CurrentKey
          const list = { scope: key.agentId, route: "crawl", filter: { id: path.id, outcome } }
          return yield* Cursor.page(list, cursor, (after) =>
            crawls.report(key, path.id, { limit, after, outcome })
          )
        })
      )
      .handle("dryRun", ({ payload }) => crawls.dryRun(payload))
  })
)
