import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { Queues } from "../../usecases/operations/Queues.ts"
import { Api } from "../Api.ts"
import * as Cursor from "../Cursor.ts"

export const QueuesHandlers = HttpApiBuilder.group(Api, "queues", (handlers) =>
  Effect.gen(function* () {
    const queues = yield* Queues
    return handlers
      .handle("list", () => Effect.map(queues.counts, (counts) => ({ queues: counts })))
      .handle("jobs", ({ path: { name }, urlParams: { limit = 20, cursor, state } }) =>
        Cursor.page(
          { scope: "operator", route: `/api/operator/queues/${name}/jobs`, filter: { state } },
          cursor,
          (before) => queues.list(name, { state, limit, before })
        )
      )
      .handle("retry", ({ path: { id, name } }) => Effect.map(queues.retry(name, id), (job) => ({ job })))
  })
)
