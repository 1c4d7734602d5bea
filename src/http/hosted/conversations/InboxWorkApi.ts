/** A team's work on conversations, other than replies. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as Schema from "effect/Schema"
import {
  AssigneeFields,
  Entry,
  EntryId,
  LabelsFields,
  NoteFields,
  Person,
  ReadFields
} from "../../../domain/conversations/Inbox.ts"
import { Conflict, NotFound, ServiceUnavailable, ValidationError } from "../../../domain/Errors.ts"
import { IdempotencyHeader } from "../../../domain/IdempotencyKey.ts"
import { ConversationId } from "../../../domain/Ids.ts"
import { managed, RequiredRole, SessionAuth } from "../../Auth.ts"
import { failure, success } from "../../Envelope.ts"
import { conversationPath } from "../../public/conversations/ConversationsApi.ts"

export const UnreadCount = Schema.Struct({ unread: Schema.Int })
export const OnePerson = Schema.Struct({ person: Person })
export const OneEntry = Schema.Struct({ entry: Entry })
const Changed = success(Schema.Struct({ id: ConversationId }))

/**
 * Number of unread conversations that humans answer and that are not assigned to another member; 100 means 100 or more.
 */
const unread = HttpApiEndpoint.get("unread", "/inbox/unread")
  .addSuccess(success(UnreadCount))
  .annotate(RequiredRole, "viewer")

/** Marks everything as read by the caller. */
const readAll = HttpApiEndpoint.post("readAll", "/inbox/read")
  .addSuccess(success(UnreadCount))
  .annotate(RequiredRole, "viewer")

/** Marks messages up to `messageId` as read by the caller. */
const read = HttpApiEndpoint.post("read", "/conversations/:id/read")
  .setPath(conversationPath)
  .setPayload(ReadFields)
  .addSuccess(Changed)
  .addError(failure(ValidationError, NotFound))
  .annotate(RequiredRole, "viewer")

/** Assigns to a member with role `agent` or above; null removes the assignee. */
const assign = HttpApiEndpoint.put("assign", "/conversations/:id/assignee")
  .setPath(conversationPath)
  .setPayload(AssigneeFields)
  .addSuccess(Changed)
  .addError(failure(ValidationError, NotFound, ServiceUnavailable))
  .annotate(RequiredRole, "agent")

/** Replaces the labels of the conversation. */
const label = HttpApiEndpoint.put("label", "/conversations/:id/labels")
  .setPath(conversationPath)
  .setPayload(LabelsFields)
  .addSuccess(Changed)
  .addError(failure(ValidationError, NotFound, ServiceUnavailable))
  .annotate(RequiredRole, "agent")

/** For the team only: customers and models never see it. */
const note = HttpApiEndpoint.post("note", "/conversations/:id/notes")
  .setPath(conversationPath)
  .setHeaders(IdempotencyHeader)
  .setPayload(NoteFields)
  .addSuccess(success(OneEntry), { status: 201 })
  .addError(failure(ValidationError, NotFound, Conflict, ServiceUnavailable))
  .annotate(RequiredRole, "agent")

/** Removes a note that the caller wrote. */
const removeNote = HttpApiEndpoint.del("removeNote", "/conversations/:id/notes/:noteId")
  .setPath(Schema.Struct({ ...conversationPath.fields, noteId: EntryId }))
  .addSuccess(success(Schema.Struct({ id: EntryId, deleted: Schema.Literal(true) })))
  .addError(failure(ValidationError, NotFound, ServiceUnavailable))
  .annotate(RequiredRole, "agent")

/** Signals to the customer that the team is typing, at most every two seconds. */
const typing = HttpApiEndpoint.post("typing", "/conversations/:id/typing")
  .setPath(conversationPath)
  .addSuccess(Changed)
  .addError(failure(NotFound))
  .annotate(RequiredRole, "agent")

/** The end user of the conversation. */
const person = HttpApiEndpoint.get("person", "/conversations/:id/person")
  .setPath(conversationPath)
  .addSuccess(success(OnePerson))
  .addError(failure(NotFound))
  .annotate(RequiredRole, "viewer")

const work = <const Id extends string>(id: Id) =>
  HttpApiGroup.make(id)
    .add(unread)
    .add(readAll)
    .add(read)
    .add(assign)
    .add(label)
    .add(note)
    .add(removeNote)
    .add(typing)
    .add(person)

export class InboxWorkApi extends work("inboxWork").prefix("/api").middleware(SessionAuth) {}

export class ManagedInboxWorkApi extends managed(work("managedInboxWork"), "conversations") {}
