import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Effect from "effect/Effect"
import { TestCases } from "../../../usecases/agents/TestCases.ts"
import { Api, type GroupHandlers } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"
import { listPage } from "../../Lists.ts"
import { audited, idOf, auditedRemoval } from "../accounts/Actor.ts"

const group = (handlers: GroupHandlers<"testCases">) =>
  Effect.gen(function* () {
    const cases = yield* TestCases
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
        audited("test_case.create", (user) => cases.create(user, path.id, payload), idOf).pipe(
          Effect.bindTo("case")
        )
      )
      .handle("fromRun", ({ path, payload: { runId } }) =>
        audited("test_case.create", (user) => cases.fromRun(user, path.id, runId), idOf).pipe(
          Effect.bindTo("case")
        )
      )
      .handle("import", ({ path: { id }, payload }) =>
        audited("test_case.import", (user) => cases.importFile(user, id, payload), id).pipe(
          Effect.map((imported) => ({ imported: imported.length }))
        )
      )
      .handle("update", ({ path, payload }) =>
        audited("test_case.update", (user) => cases.update(user, path.id, payload), idOf).pipe(
          Effect.bindTo("case")
        )
      )
      .handle("remove", ({ path: { id } }) => auditedRemoval("test_case.delete", id, cases.remove))
  })

export const TestCasesHandlers = HttpApiBuilder.group(Api, "testCases", group)
export const ManagedTestCasesHandlers = HttpApiBuilder.group(Api, "managedTestCases", group)
