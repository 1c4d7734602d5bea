/** A team's work on conversations, other than replies: read marks, assignees, labels and notes. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { SessionUser } from "../../domain/accounts/Access.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import {
  type Entry,
  type EntryId,
  entryIdOf,
  type LabelId,
  maxNotes,
  newEntryId
} from "../../domain/conversations/Inbox.ts"
import { Conflict, NotFound, invalidField, noSuch, orNoSuch } from "../../domain/Errors.ts"
import type { ConversationId, MessageId, UserId } from "../../domain/Ids.ts"
import { InboxListStore, type InboxMember } from "../../store/conversations/InboxList.ts"
import { InboxWorkStore } from "../../store/conversations/InboxWork.ts"
import { differentRequest, repeatHash } from "../accounts/RepeatedRequests.ts"
import { RealtimeFeed } from "./RealtimeFeed.ts"

const notAssignable = () =>
  invalidField(
    ["userId"],
    "Expected a member from the role agent on",
    "A conversation is assigned to a member of the team who may answer."
  )

export class InboxWork extends Effect.Service<InboxWork>()("usecases/conversations/InboxWork", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const lists = yield* InboxListStore
    const store = yield* InboxWorkStore
    const feed = yield* RealtimeFeed

    const inTransaction = <A, E, R>(work: Effect.Effect<A, E, R>) =>
      work.pipe(sql.withTransaction, Effect.catchTag("SqlError", Effect.die))

    /** Marks everything up to the message as read. */
    const read = Effect.fn("InboxWork.read")(function* (
      reader: InboxMember,
      id: ConversationId,
      messageId: MessageId
    ) {
      if (!(yield* lists.read(reader, id, messageId))) return yield* noSuch("conversation")
    })

    /** Assigns the conversation to a member, or to nobody. The thread records a change. */
    const assign = Effect.fn("InboxWork.assign")(function* (
      reader: InboxMember,
      id: ConversationId,
      userId: UserId | null
    ) {
      // Before the conversation is locked, in the order in which changes of the team lock both.
      const role = yield* userId === null ? Effect.succeedNone : store.roleOf(reader, userId)
      const before = yield* store.assignee(reader, id).pipe(orNoSuch("conversation"))
      if (before.userId === userId) return
      if (userId !== null) {
        const found = yield* Effect.succeed(role).pipe(orNoSuch("member of the team"))
        if (found === "viewer") return yield* notAssignable()
      }
      yield* store.assign(reader, id, userId)
      const entry =
        userId === null
          ? { kind: "unassigned" as const, subjectId: before.userId }
          : { kind: "assigned" as const, subjectId: userId }
      yield* store.addEntry(reader, id, entry)
    }, inTransaction)

    /** Replaces the labels of the conversation. The thread records each change. */
    const label = Effect.fn("InboxWork.label")(function* (
      reader: InboxMember,
      id: ConversationId,
      labelIds: ReadonlyArray<LabelId>
    ) {
      if (!(yield* store.lock(reader, id))) return yield* noSuch("conversation")
      if (!(yield* store.hasLabels(reader, labelIds))) return yield* noSuch("label")
      for (const { added, name } of yield* store.setLabels(reader, id, labelIds)) {
        yield* store.addEntry(reader, id, { kind: added ? "labelled" : "unlabelled", content: name })
      }
    }, inTransaction)

    /**
     * Adds a note of the team. Customers and models never see notes. CONFLICT when there are too many. A repeat with
     * the same `idempotencyKey` adds nothing.
     */
    const note = Effect.fn("InboxWork.note")(function* (
      reader: SessionUser,
      id: ConversationId,
      content: string,
      idempotencyKey?: string
    ) {
      const hash = repeatHash(reader, id, idempotencyKey)
      const noteId = hash === null ? yield* newEntryId : entryIdOf(hash)
      const work = Effect.gen(function* () {
        if (!(yield* store.lock(reader, id))) return yield* noSuch("conversation")
        const earlier = yield* store.entry(reader, noteId)
        if (Option.isSome(earlier))
          return earlier.value.content === content ? noteId : yield* differentRequest()
        if (!(yield* store.hasRoomForNotes(reader, id))) {
          return yield* new Conflict({ message: `A conversation takes at most ${maxNotes} notes.` })
        }
        return yield* store.addEntry(reader, id, { kind: "note", content }, noteId)
      })
      const added: Option.Option<Entry> = yield* store.entry(reader, yield* inTransaction(work))
      if (Option.isNone(added)) return yield* noSuch("conversation")
      return added.value
    })

    /** Removes a note that the member wrote. */
    const removeNote = Effect.fn("InboxWork.removeNote")(function* (
      reader: InboxMember,
      id: ConversationId,
      noteId: EntryId
    ) {
      if (yield* store.removeNote(reader, id, noteId)) return
      return yield* new NotFound({ message: "You have no such note in this conversation." })
    })

    /** The end user of the conversation. */
    const person = Effect.fn("InboxWork.person")(function* (scope: TenantScope, id: ConversationId) {
      return yield* store.person(scope, id).pipe(orNoSuch("conversation"))
    })

    /** Signals to the customer that the team is typing. */
    const typing = Effect.fn("InboxWork.typing")(function* (scope: TenantScope, id: ConversationId) {
      if (!(yield* store.isOpen(scope, id))) return yield* noSuch("conversation")
      yield* feed.signalTyping(id, "team")
    })

    return {
      typing,
      unread: lists.unread,
      read,
      readAll: lists.readAll,
      assign,
      label,
      note,
      removeNote,
      person
    } as const
  })
}) {}
