/** Stored data of a person: shown to the team, exported for access requests, and erased on request. */
import * as Chunk from "effect/Chunk"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import * as Stream from "effect/Stream"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import type { EndUser } from "../../domain/conversations/EndUser.ts"
import { Conflict, ServiceUnavailable, noSuch, orNoSuch } from "../../domain/Errors.ts"
import type { EndUserId } from "../../domain/Ids.ts"
import { EndUserStore, type Line } from "../../store/conversations/EndUsers.ts"
import { Artifacts } from "../knowledge/Artifacts.ts"

/** Rows per read. An export of any size needs the memory of one page. */
const pageSizes = { deliveries: 200, conversations: 50, messages: 200, runs: 20 } as const

const unavailable = () => new ServiceUnavailable({ message: "Nothing can be erased now. Try again later." })

/** All rows of a list that is read in pages of `limit`. */
const paged = (limit: number, read: (after: string, limit: number) => Effect.Effect<ReadonlyArray<Line>>) =>
  Stream.paginateChunkEffect("", (after) =>
    Effect.map(read(after, limit), (lines) => [
      Chunk.fromIterable(lines),
      lines.length < limit ? Option.none<string>() : Option.fromNullable(lines.at(-1)?.id)
    ])
  )

const profile = ({ id, externalId, createdAt }: EndUser): Line["line"] => ({
  type: "end_user",
  id,
  externalId,
  createdAt: DateTime.formatIso(createdAt)
})

export class EndUsers extends Effect.Service<EndUsers>()("usecases/conversations/EndUsers", {
  effect: Effect.gen(function* () {
    const store = yield* EndUserStore
    const artifacts = yield* Artifacts

    const conversationLines = (scope: TenantScope, { id, line }: Line) =>
      Stream.make({ id, line }).pipe(
        Stream.concat(paged(pageSizes.messages, (...page) => store.messages(scope, id, ...page))),
        Stream.concat(paged(pageSizes.messages, (...page) => store.notes(scope, id, ...page))),
        Stream.concat(paged(pageSizes.runs, (...page) => store.runs(scope, id, ...page)))
      )

    /**
     * Everything that is stored about the person, one object per line. The last one is `{type: "end", lines}`; an
     * export without it is incomplete.
     */
    const exportData = Effect.fn("EndUsers.exportData")(function* (scope: TenantScope, id: EndUserId) {
      const found = yield* store.find(scope, id).pipe(orNoSuch("end user"))
      const count = yield* Ref.make(0)
      const end = Effect.map(Ref.get(count), (lines): Line["line"] => ({ type: "end", lines }))
      const conversations = paged(pageSizes.conversations, (...page) =>
        store.conversations(scope, id, ...page)
      )
      const stored = Stream.fromIterableEffect(store.aliases(scope, id)).pipe(
        Stream.concat(paged(pageSizes.deliveries, (...page) => store.deliveries(scope, id, ...page))),
        Stream.concat(Stream.flatMap(conversations, (line) => conversationLines(scope, line)))
      )
      return Stream.make(profile(found)).pipe(
        Stream.concat(Stream.map(stored, ({ line }) => line)),
        Stream.tap(() => Ref.update(count, (lines) => lines + 1)),
        Stream.concat(Stream.fromEffect(end))
      )
    })

    /**
     * Erases the person's data permanently. Files that no other message refers to are removed by a job. CONFLICT while
     * a turn of the person runs.
     */
    const erase = Effect.fn("EndUsers.erase")(function* (scope: TenantScope, id: EndUserId) {
      const outcome = yield* Effect.mapError(store.erase(scope, id, artifacts.releaseAll), unavailable)
      if (outcome === "missing") return yield* noSuch("end user")
      if (outcome === "busy") {
        return yield* new Conflict({
          message: "A turn of this end user is running. Stop it, or wait for its end."
        })
      }
    })

    return { list: store.list, exportData, erase } as const
  })
}) {}
