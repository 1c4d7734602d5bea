import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Effect from "effect/Effect"
import { AuditTrail } from "../../../usecases/accounts/AuditTrail.ts"
import { TestCases } from "../../../usecases/agents/TestCases.ts"
import { Api, type GroupHandlers } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"
import { listPage } from "../../Lists.ts"
import { actor, removal } from "../accounts/Actor.ts"

const group = (handlers: GroupHandlers<"testCases">) =>
  Effect.gen(function* () {
    const cases = yield* TestCases
    const audit = yield* AuditTrail
    return handlers
      .handle("list", ({ path, urlParams }) =>
        listPage(
          "cases",
          { route: "/api/agents/:id/cases", filter: { id: path.id } },
          urlParams,
          (user, page) => cases.list(user, path.id, page)
        )
      )
      .handle("export", ({ path }) =>
        Effect.map(
          Effect.flatMap(CurrentUser, (user) => cases.exportAll(user, path.id)),
          (text) =>
            HttpServerResponse.text(text, {
              contentType: "application/x-ndjson",
              headers: {
                "cache-control": "no-store",
                "content-disposition": 'attachment; filename="cases.jsonl"'
              }
            })
        )
      )
      .handle("create", ({ path, payload }) =>
        Effect.gen(function* () {
          const change = cases.create(yield* CurrentUser, path.id, payload)
          return { case: yield* audit.change(yield* actor, "test_case.create", change, ({ id }) => id) }
        })
      )
      .handle("fromRun", ({ path, payload: { runId } }) =>
        Effect.gen(function* () {
          const change = cases.fromRun(yield* CurrentUser, path.id, runId)
          return { case: yield* audit.change(yield* actor, "test_case.create", change, ({ id }) => id) }
        })
      )
      .handle("import", ({ path: { id }, payload }) =>
        Effect.gen(function* () {
          const change = cases.importFile(yield* CurrentUser, id, payload)
          const made = yield* audit.change(yield* actor, "test_case.import", change, () => id)
          return { imported: made.length }
        })
      )
      .handle("update", ({ path, payload }) =>
        Effect.gen(function* () {
          const change = cases.update(yield* CurrentUser, path.id, payload)
          return { case: yield* audit.change(yield* actor, "test_case.update", change, ({ id }) => id) }
        })
      )
      .handle("remove", ({ path: { id } }) => removal(audit, "test_case.delete", id, cases.remove))
  })

export const TestCasesHandlers = HttpApiBuilder.group(Api, "testCases", group)
export const ManagedTestCasesHandlers = HttpApiBuilder.group(Api, "managedTestCases", group)
