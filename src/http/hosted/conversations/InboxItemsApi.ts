/** A team's labels, saved views and canned replies. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as Schema from "effect/Schema"
import {
  CannedReply,
  CannedReplyFields,
  CannedReplyId,
  Label,
  LabelFields,
  LabelId,
  SavedView,
  SavedViewFields,
  SavedViewId
} from "../../../domain/conversations/Inbox.ts"
import { Conflict, NotFound, ServiceUnavailable, ValidationError } from "../../../domain/Errors.ts"
import { managed, RequiredRole, SessionAuth } from "../../Auth.ts"
import { deletion, failure, success } from "../../Envelope.ts"

export const AllItems = Schema.Struct({
  labels: Schema.Array(Label),
  views: Schema.Array(SavedView),
  replies: Schema.Array(CannedReply)
})
export const OneLabel = Schema.Struct({ label: Label })
const OneView = Schema.Struct({ view: SavedView })
const OneReply = Schema.Struct({ reply: CannedReply })

const all = HttpApiEndpoint.get("all", "/inbox/items")
  .addSuccess(success(AllItems))
  .annotate(RequiredRole, "viewer")

const addLabel = HttpApiEndpoint.post("addLabel", "/inbox/labels")
  .setPayload(LabelFields)
  .addSuccess(success(OneLabel), { status: 201 })
  .addError(failure(ValidationError, Conflict, ServiceUnavailable))
  .annotate(RequiredRole, "agent")

/** Also removes the label from conversations. */
const removeLabel = deletion("removeLabel", "/inbox/labels/:id", LabelId).annotate(RequiredRole, "agent")

/** For the whole team. `me` in a view is the member who opens it. */
const addView = HttpApiEndpoint.post("addView", "/inbox/views")
  .setPayload(SavedViewFields)
  .addSuccess(success(OneView), { status: 201 })
  .addError(failure(ValidationError, Conflict, ServiceUnavailable))
  .annotate(RequiredRole, "agent")

const removeView = deletion("removeView", "/inbox/views/:id", SavedViewId).annotate(RequiredRole, "agent")

const addReply = HttpApiEndpoint.post("addReply", "/inbox/replies")
  .setPayload(CannedReplyFields)
  .addSuccess(success(OneReply), { status: 201 })
  .addError(failure(ValidationError, Conflict, ServiceUnavailable))
  .annotate(RequiredRole, "agent")

const updateReply = HttpApiEndpoint.put("updateReply", "/inbox/replies/:id")
  .setPath(Schema.Struct({ id: CannedReplyId }))
  .setPayload(CannedReplyFields)
  .addSuccess(success(OneReply))
  .addError(failure(ValidationError, NotFound, Conflict, ServiceUnavailable))
  .annotate(RequiredRole, "agent")

const removeReply = deletion("removeReply", "/inbox/replies/:id", CannedReplyId).annotate(
  RequiredRole,
  "agent"
)

const items = <const Id extends string>(id: Id) =>
  HttpApiGroup.make(id)
    .add(all)
    .add(addLabel)
    .add(removeLabel)
    .add(addView)
    .add(removeView)
    .add(addReply)
    .add(updateReply)
    .add(removeReply)

export class InboxItemsApi extends items("inboxItems").prefix("/api").middleware(SessionAuth) {}

export class ManagedInboxItemsApi extends managed(items("managedInboxItems"), "conversations") {}
