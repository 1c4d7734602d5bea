import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { Contents } from "../../../usecases/knowledge/Contents.ts"
import { SourceScopes } from "../../../usecases/knowledge/SourceScopes.ts"
import { Api, type GroupHandlers } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"
import * as Cursor from "../../Cursor.ts"
import { audited } from "../accounts/Actor.ts"

/** Handlers for the content of the sources of the tenant's agents. */
const group = (handlers: GroupHandlers<"contents">) =>
  Effect.gen(function* () {
    const contents = yield* Contents
    const scopes = yield* SourceScopes
    return handlers
      .handle("documents", ({ path: { id }, urlParams: { q, limit = 50, cursor } }) =>
        Effect.gen(function* () {
          const scope = yield* scopes.ofSource(yield* CurrentUser, id)
          const list = { scope: scope.agentId, route: "/api/sources/:id/documents", filter: { id, q } }
          const { nextCursor, rows } = yield* Cursor.page(list, cursor, (after) =>
            contents.documents(scope, id, { text: q, after, limit })
          )
          return { documents: rows, nextCursor }
        })
      )
      .handle("document", ({ path: { document, id }, urlParams: { limit = 50, cursor } }) =>
        Effect.gen(function* () {
          const scope = yield* scopes.ofSource(yield* CurrentUser, id)
          const list = {
            scope: scope.agentId,
            route: "/api/sources/:id/documents/:document",
            filter: { id, document }
          }
          return yield* Cursor.page(list, cursor, (after = "-1") =>
            contents.document(scope, id, document, { after: Number(after), limit })
          )
        })
      )
      .handle("citations", ({ path: { id, passage } }) =>
        Effect.gen(function* () {
          const scope = yield* scopes.ofSource(yield* CurrentUser, id)
          return { turns: yield* contents.citing(scope, id, passage) }
        })
      )
      .handle("exclude", ({ path: { id, passage } }) =>
        audited(
          "passage.exclude",
          (user) =>
            Effect.flatMap(scopes.ofSource(user, id), (scope) => contents.exclude(scope, id, passage)),
          passage
        )
      )
      .handle("restore", ({ path: { id, passage } }) =>
        audited(
          "passage.restore",
          (user) =>
            Effect.flatMap(scopes.ofSource(user, id), (scope) => contents.restore(scope, id, passage)),
          passage
        )
      )
      .handle("search", ({ path: { id }, payload }) =>
        Effect.gen(function* () {
          return yield* contents.find(yield* scopes.ofAgent(yield* CurrentUser, id), payload)
        })
      )
  })

export const ContentsHandlers = HttpApiBuilder.group(Api, "contents", group)
export const ManagedContentsHandlers = HttpApiBuilder.group(Api, "managedContents", group)
