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
import { ManageAuth, Managed, RequiredRole, SessionAuth } from "../../Auth.ts"
import { failure, success } from "../../Envelope.ts"

export const AllItems = Schema.Struct({
  labels: Schema.Array(Label),
  views: Schema.Array(SavedView),
  replies: Schema.Array(CannedReply)
})
export const OneLabel = Schema.Struct({ label: Label })
const OneView = Schema.Struct({ view: SavedView })
const OneReply = Schema.Struct({ reply: CannedReply })

const deleted = <A extends string, I>(id: Schema.Schema<A, I>) =>
  success(Schema.Struct({ id, deleted: Schema.Literal(true) }))

const all = HttpApiEndpoint.get("all", "/inbox/items")
  .addSuccess(success(AllItems))
  .annotate(RequiredRole, "viewer")

const addLabel = HttpApiEndpoint.post("addLabel", "/inbox/labels")
  .setPayload(LabelFields)
  .addSuccess(success(OneLabel), { status: 201 })
  .addError(failure(ValidationError, Conflict, ServiceUnavailable))
  .annotate(RequiredRole, "agent")

/** Also removes the label from conversations. */
const removeLabel = HttpApiEndpoint.del("removeLabel", "/inbox/labels/:id")
  .setPath(Schema.Struct({ id: LabelId }))
  .addSuccess(deleted(LabelId))
  .addError(failure(ValidationError, NotFound, ServiceUnavailable))
  .annotate(RequiredRole, "agent")

/** For the whole team. `me` in a view is the member who opens it. */
const addView = HttpApiEndpoint.post("addView", "/inbox/views")
  .setPayload(SavedViewFields)
  .addSuccess(success(OneView), { status: 201 })
  .addError(failure(ValidationError, Conflict, ServiceUnavailable))
  .annotate(RequiredRole, "agent")

const removeView = HttpApiEndpoint.del("removeView", "/inbox/views/:id")
  .setPath(Schema.Struct({ id: SavedViewId }))
  .addSuccess(deleted(SavedViewId))
  .addError(failure(ValidationError, NotFound, ServiceUnavailable))
  .annotate(RequiredRole, "agent")

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

const removeReply = HttpApiEndpoint.del("removeReply", "/inbox/replies/:id")
  .setPath(Schema.Struct({ id: CannedReplyId }))
  .addSuccess(deleted(CannedReplyId))
  .addError(failure(ValidationError, NotFound, ServiceUnavailable))
  .annotate(RequiredRole, "agent")

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

export class ManagedInboxItemsApi extends items("managedInboxItems")
  .prefix("/api/manage/v1")
  .middleware(ManageAuth)
  .annotateEndpoints(Managed, "conversations") {}
