/** Data of the dashboard's inbox: summaries of conversations, newest messages, sockets and traces. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as Schema from "effect/Schema"
import { optional } from "../../../domain/Optional.ts"
import { RunTrace } from "../../../domain/chat/AgentRun.ts"
import { Entry, InboxFilter, InboxStatus } from "../../../domain/conversations/Inbox.ts"
import { NotFound, ServiceUnavailable, ValidationError } from "../../../domain/Errors.ts"
import { AgentId, MessageId, RunId } from "../../../domain/Ids.ts"
import { ConversationPreview, InboxMessage, LastRun } from "../../../domain/conversations/InboxView.ts"
import { limitParam, nextCursor, pageParams, WholeNumber } from "../../../domain/Page.ts"
import { ArtifactRef } from "../../../domain/knowledge/Source.ts"
import { RequiredRole, SessionAuth } from "../../Auth.ts"
import { bytesBody, failure, success } from "../../Envelope.ts"
import { conversationPath } from "../../public/conversations/ConversationsApi.ts"
import { HostedConversation } from "./ConversationsApi.ts"

export const InboxConversation = Schema.Struct({
  ...HostedConversation.fields,
  ...ConversationPreview.fields,
  ...InboxStatus.fields
})

export const InboxPage = Schema.Struct({ conversations: Schema.Array(InboxConversation), nextCursor })

/** Last activity first, each with the customer and the last message. */
const list = HttpApiEndpoint.get("list", "/api/inbox")
  .setUrlParams(
    Schema.Struct({
      ...pageParams.fields,
      ...InboxFilter.fields
    })
  )
  .addSuccess(success(InboxPage))
  .addError(failure(ValidationError))
  .annotate(RequiredRole, "viewer")

export const RecentMessages = Schema.Struct({
  conversation: InboxConversation,
  messages: Schema.Array(InboxMessage),
  /** Thread events between the messages of this page. */
  entries: Schema.Array(Entry),
  hasMore: Schema.Boolean
})

/** The last messages, or the last ones before `before`, oldest first. */
const recent = HttpApiEndpoint.get("recent", "/api/conversations/:id/recent")
  .setPath(conversationPath)
  .setUrlParams(Schema.Struct({ limit: limitParam(100), before: optional(MessageId) }))
  .addSuccess(success(RecentMessages))
  .addError(failure(ValidationError, NotFound))
  .annotate(RequiredRole, "viewer")

/** A file of the conversation, by the `artifact` in its message; outside the envelope. */
const attachment = HttpApiEndpoint.get("attachment", "/api/conversations/:id/attachments/:artifact")
  .setPath(Schema.Struct({ ...conversationPath.fields, artifact: ArtifactRef }))
  .addSuccess(bytesBody)
  .addError(failure(ValidationError, NotFound, ServiceUnavailable))
  .annotate(RequiredRole, "viewer")

export const SocketAccess = Schema.Struct({ realtimeToken: Schema.String, realtimeUrl: Schema.String })

/** A token for the conversation's realtime socket, valid for one hour. */
const realtime = HttpApiEndpoint.post("realtime", "/api/conversations/:id/realtime")
  .setPath(conversationPath)
  .addSuccess(success(SocketAccess))
  .addError(failure(NotFound))
  .annotate(RequiredRole, "viewer")

/** The trace of a run with its payloads. Each read gets an audit entry. */
const trace = HttpApiEndpoint.get("trace", "/api/agent-runs/:runId")
  .setPath(Schema.Struct({ runId: RunId }))
  .setUrlParams(
    Schema.Struct({
      limit: limitParam(100),
      cursor: optional(WholeNumber.pipe(Schema.positive()))
    })
  )
  .addSuccess(success(RunTrace))
  .addError(failure(ValidationError, NotFound, ServiceUnavailable))
  .annotate(RequiredRole, "agent")

export const LatestRun = Schema.Struct({ run: Schema.NullOr(LastRun) })

/** The outcome of the agent's last ended turn, with the reason when it has no answer. */
const lastRun = HttpApiEndpoint.get("lastRun", "/api/agents/:id/last-run")
  .setPath(Schema.Struct({ id: AgentId }))
  .addSuccess(success(LatestRun))
  .addError(failure(ValidationError, NotFound))
  .annotate(RequiredRole, "viewer")

export class InboxViewApi extends HttpApiGroup.make("inboxView")
  .add(list)
  .add(recent)
  .add(attachment)
  .add(realtime)
  .add(trace)
  .add(lastRun)
  .middleware(SessionAuth) {}
