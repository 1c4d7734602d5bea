/** The team's work on conversations: assignees, notes, labels, saved views, canned replies, and the history. */
import * as Schema from "effect/Schema"
import {
  AgentId,
  ConversationId,
  EndUserId,
  MessageId,
  UserId,
  brandedId,
  hashedId,
  idGenerator
} from "../Ids.ts"
import { optional } from "../Optional.ts"
import { trimmed } from "../Text.ts"
import { ConversationChannel, ConversationState } from "./Conversation.ts"

export const LabelId = brandedId("LabelId")
export type LabelId = typeof LabelId.Type
export const SavedViewId = brandedId("SavedViewId")
export type SavedViewId = typeof SavedViewId.Type
export const CannedReplyId = brandedId("CannedReplyId")
export type CannedReplyId = typeof CannedReplyId.Type
export const EntryId = brandedId("EntryId")
export type EntryId = typeof EntryId.Type

export const newLabelId = idGenerator("lbl", (text) => LabelId.make(text))
export const newSavedViewId = idGenerator("viw", (text) => SavedViewId.make(text))
export const newCannedReplyId = idGenerator("cre", (text) => CannedReplyId.make(text))
export const newEntryId = idGenerator("ent", (text) => EntryId.make(text))
export const entryIdOf = (hash: Uint8Array): EntryId => EntryId.make(hashedId("ent", hash))

/** Maximum number of labels, of saved views and of canned replies of one tenant. */
export const maxInboxItems = 100
/** Maximum number of labels of one conversation. */
const maxLabels = 20
/** Maximum number of notes of one conversation. */
export const maxNotes = 500
/** Unread conversations are counted up to this number. */
export const maxUnread = 100

const name = trimmed(60)

const LabelTone = Schema.Literal("neutral", "accent", "good", "warn", "bad")
export const LabelFields = Schema.Struct({ name, tone: LabelTone })
export const Label = Schema.Struct({ id: LabelId, ...LabelFields.fields }).annotations({
  identifier: "InboxLabel"
})
export type Label = typeof Label.Type

/** Assignee of the conversations: the caller, no one, or one member. */
const AssigneeFilter = Schema.Union(Schema.Literal("me", "none"), UserId)

/** Filter of a list of conversations. Omitted fields do not filter. */
export const InboxFilter = Schema.Struct({
  agentId: optional(AgentId),
  state: optional(ConversationState),
  channel: optional(ConversationChannel),
  assignee: optional(AssigneeFilter),
  label: optional(LabelId),
  /** Only conversations with something that the caller has not read. */
  unread: optional(Schema.Literal("true")),
  /** Words in messages, notes or the customer's name. Each matches the beginning of a word. */
  q: optional(trimmed(200))
})
export type InboxFilter = typeof InboxFilter.Type

export const SavedViewFields = Schema.Struct({ name, filter: InboxFilter })
export const SavedView = Schema.Struct({ id: SavedViewId, ...SavedViewFields.fields }).annotations({
  identifier: "InboxView"
})
export type SavedView = typeof SavedView.Type

export const CannedReplyFields = Schema.Struct({
  /** The name that is typed after `/`. */
  shortcut: trimmed(40).pipe(
    Schema.pattern(/^[\p{L}\p{N}_-]+$/u, { message: () => "Expected letters, digits, - and _" })
  ),
  /** `{{name}}` is replaced by the customer's name. */
  content: trimmed(4_000)
})
export const CannedReply = Schema.Struct({ id: CannedReplyId, ...CannedReplyFields.fields }).annotations({
  identifier: "CannedReply"
})
export type CannedReply = typeof CannedReply.Type

/** A member of the team; `email` is null for a former member. */
export const Teammate = Schema.Struct({ id: UserId, email: Schema.NullOr(Schema.String) })
export type Teammate = typeof Teammate.Type

export const EntryKind = Schema.Literal(
  "note",
  "requested",
  "taken",
  "released",
  "closed",
  "assigned",
  "unassigned",
  "labelled",
  "unlabelled"
)
export type EntryKind = typeof EntryKind.Type

/** An entry of a thread that is not a message. Only the team sees it. */
export const Entry = Schema.Struct({
  id: EntryId,
  kind: EntryKind,
  /** Position of the message before it; 0 before the first. */
  position: Schema.Int,
  /** The member who did it; null for the customer, the agent and the service. */
  by: Schema.NullOr(Teammate),
  /** The member to whom the conversation was assigned. */
  subject: Schema.NullOr(Teammate),
  /** The note, the reason for asking for a human, or the label's name. */
  content: Schema.NullOr(Schema.String),
  createdAt: Schema.DateTimeUtc
}).annotations({ identifier: "ConversationEntry" })
export type Entry = typeof Entry.Type

export const NoteFields = Schema.Struct({ content: trimmed(10_000) })
export const AssigneeFields = Schema.Struct({ userId: Schema.NullOr(UserId) })
export const LabelsFields = Schema.Struct({
  labelIds: Schema.Array(LabelId).pipe(Schema.maxItems(maxLabels))
})
export const ReadFields = Schema.Struct({
  /** The last message that was seen. */
  messageId: MessageId
})

/** A conversation's status in the inbox, as one member sees it. */
export const InboxStatus = Schema.Struct({
  /** The customer's last message. */
  question: Schema.NullOr(Schema.String),
  /** True if the customer has written since the caller last read. */
  unread: Schema.Boolean,
  assignee: Schema.NullOr(Teammate),
  labelIds: Schema.Array(LabelId)
})
export type InboxStatus = typeof InboxStatus.Type

/** Another conversation of the same person. */
const OtherConversation = Schema.Struct({
  id: ConversationId,
  channel: ConversationChannel,
  state: ConversationState,
  question: Schema.NullOr(Schema.String),
  updatedAt: Schema.DateTimeUtc
})

/** The end user of a conversation. */
export const Person = Schema.Struct({
  id: EndUserId,
  externalId: Schema.NullOr(Schema.String),
  /** Aliases of the person at messaging providers. */
  contacts: Schema.Array(
    Schema.Struct({ channel: Schema.String, kind: Schema.String, value: Schema.String })
  ),
  createdAt: Schema.DateTimeUtc,
  conversationCount: Schema.Int,
  /** The last ten, without the requested one. */
  others: Schema.Array(OtherConversation)
}).annotations({ identifier: "InboxPerson" })
export type Person = typeof Person.Type
