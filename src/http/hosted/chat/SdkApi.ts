/** The widget's routes other than the chat stream. The agent is that of the key, or `agentId`. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as Schema from "effect/Schema"
import { Conflict, NotFound, ServiceUnavailable, ValidationError } from "../../../domain/Errors.ts"
import { cursorParam, limitParam, nextCursor } from "../../../domain/Page.ts"
import {
  ConversationView,
  Feedback,
  FeedbackRequest,
  HandoffRequest,
  IdentifyRequest,
  InitRequest,
  SessionQuery,
  SessionView,
  TypingRequest,
  VoiceRequest,
  VoiceView,
  WidgetMessage
} from "../../../domain/chat/Widget.ts"
import { ShownWidget } from "../../../domain/agents/Widget.ts"
import { AgentId } from "../../../domain/Ids.ts"
import { optional } from "../../../domain/Optional.ts"
import { CallerAuth, RequiredPermission, RequiredRole } from "../../Auth.ts"
import { bytesBody, failure, success } from "../../Envelope.ts"

const refused = failure(ValidationError, NotFound)

/** The widget's appearance, read before it is opened. */
const widget = HttpApiEndpoint.get("widget", "/api/sdk/widget")
  .setUrlParams(Schema.Struct({ agentId: optional(AgentId) }))
  .addSuccess(success(ShownWidget))
  .addError(refused)
  .annotate(RequiredRole, "viewer")

/** Resumes the named session, else makes a new one. */
const init = HttpApiEndpoint.post("init", "/api/sdk/init")
  .setPayload(InitRequest)
  .addSuccess(success(SessionView))
  .addError(failure(ValidationError, NotFound, Conflict))
  .annotate(RequiredRole, "agent")

const conversation = HttpApiEndpoint.get("conversation", "/api/sdk/conversation")
  .setUrlParams(SessionQuery)
  .addSuccess(success(ConversationView))
  .addError(refused)
  .annotate(RequiredRole, "viewer")

export const WidgetMessagePage = Schema.Struct({
  messages: Schema.Array(WidgetMessage),
  nextCursor,
  hasMore: Schema.Boolean
})

/** Oldest first, like the public route. */
const messages = HttpApiEndpoint.get("messages", "/api/sdk/messages")
  .setUrlParams(
    Schema.Struct({
      ...SessionQuery.fields,
      limit: limitParam(Number.MAX_SAFE_INTEGER),
      cursor: cursorParam
    })
  )
  .addSuccess(success(WidgetMessagePage))
  .addError(refused)
  .annotate(RequiredRole, "viewer")

/** The file itself, outside the envelope. */
const attachment = HttpApiEndpoint.get("attachment", "/api/sdk/attachments/:id")
  .setPath(Schema.Struct({ id: Schema.String }))
  .setUrlParams(SessionQuery)
  .addSuccess(bytesBody)
  .addError(failure(ValidationError, NotFound, ServiceUnavailable))
  .annotate(RequiredRole, "viewer")

const identify = HttpApiEndpoint.post("identify", "/api/sdk/identify")
  .setPayload(IdentifyRequest)
  .addSuccess(success(SessionView.pick("endUserId", "conversationId")))
  .addError(failure(ValidationError, NotFound, Conflict))
  .annotate(RequiredRole, "agent")

const feedback = HttpApiEndpoint.post("feedback", "/api/sdk/feedback")
  .setPayload(FeedbackRequest)
  .addSuccess(success(Schema.Struct({ feedback: Feedback })))
  .addError(refused)
  .annotate(RequiredRole, "agent")

const handoff = HttpApiEndpoint.post("handoff", "/api/sdk/handoff")
  .setPayload(HandoffRequest)
  .addSuccess(success(ConversationView))
  .addError(refused)
  .annotate(RequiredRole, "agent")

/** Signals to the team that the person is typing, at most every two seconds. */
const typing = HttpApiEndpoint.post("typing", "/api/sdk/typing")
  .setPayload(TypingRequest)
  .addSuccess(success(Schema.Struct({ told: Schema.Boolean })))
  .addError(refused)
  .annotate(RequiredRole, "agent")

const voice = HttpApiEndpoint.post("voice", "/api/sdk/voice/start")
  .setPayload(VoiceRequest)
  .addSuccess(success(VoiceView))
  .addError(failure(ValidationError, NotFound, Conflict))
  .annotate(RequiredRole, "agent")

export const SdkApi = HttpApiGroup.make("sdk")
  .add(widget)
  .add(init)
  .add(conversation)
  .add(messages)
  .add(attachment)
  .add(identify)
  .add(feedback)
  .add(handoff)
  .add(typing)
  .add(voice)
  .annotateEndpoints(RequiredPermission, "chat")
  .middleware(CallerAuth)
