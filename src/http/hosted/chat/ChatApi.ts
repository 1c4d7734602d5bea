/** The hosted chat stream, and removed routes. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as Schema from "effect/Schema"
import {
  ConversationNotActive,
  ConversationNotFound,
  EndUserNotFound,
  FileTooLarge,
  Forbidden,
  Gone,
  NotFound,
  PayloadTooLarge,
  NotConfigured,
  RuntimeDataUnavailable,
  RuntimeTimeout,
  ServiceUnavailable,
  TurnFailed,
  TurnLimitExceeded,
  UnsupportedAttachmentType,
  UnsupportedType,
  ValidationError
} from "../../../domain/Errors.ts"
import { RunStatus } from "../../../domain/chat/AgentRun.ts"
import { AgentId, RunId } from "../../../domain/Ids.ts"
import { optional } from "../../../domain/Optional.ts"
import { CallerAuth, OpenReason, RequiredPermission, RequiredRole } from "../../Auth.ts"
import { failure, success, textBody } from "../../Envelope.ts"

const Events = textBody("text/event-stream")

/**
 * JSON (domain/chat/Widget `HostedTurnRequest`), or `multipart/form-data` with `message`, `files` and the other fields;
 * fields other than text are JSON.
 */
const stream = HttpApiEndpoint.post("stream", "/api/v1/chat/stream")
  .addSuccess(Events)
  .addError(
    failure(
      ValidationError,
      NotFound,
      ConversationNotFound,
      EndUserNotFound,
      ConversationNotActive,
      Forbidden,
      TurnLimitExceeded,
      NotConfigured,
      RuntimeDataUnavailable,
      TurnFailed,
      RuntimeTimeout,
      UnsupportedType,
      UnsupportedAttachmentType,
      FileTooLarge,
      PayloadTooLarge,
      ServiceUnavailable
    )
  )
  .annotate(RequiredPermission, "chat")
  .annotate(RequiredRole, "agent")

/** Follows a running turn from its first part, for a page that was reloaded. */
const follow = HttpApiEndpoint.get("follow", "/api/v1/chat/stream/:runId")
  .setPath(Schema.Struct({ runId: RunId }))
  .setUrlParams(Schema.Struct({ agentId: optional(AgentId) }))
  .addSuccess(Events)
  .addError(failure(ValidationError, NotFound))
  .annotate(RequiredPermission, "chat")
  .annotate(RequiredRole, "agent")

/** Stops a running turn: the text so far becomes the reply. */
const stop = HttpApiEndpoint.post("stop", "/api/v1/chat/stream/:runId/stop")
  .setPath(Schema.Struct({ runId: RunId }))
  .setUrlParams(Schema.Struct({ agentId: optional(AgentId) }))
  .addSuccess(success(Schema.Struct({ id: RunId, status: RunStatus })))
  .addError(failure(ValidationError, NotFound))
  .annotate(RequiredPermission, "chat")
  .annotate(RequiredRole, "agent")

export const HostedChatApi = HttpApiGroup.make("hostedChat")
  .add(stream)
  .add(follow)
  .add(stop)
  .middleware(CallerAuth)

/** Removed routes: every request is answered 410. */
export const RemovedRoutesApi = HttpApiGroup.make("shims")
  .add(HttpApiEndpoint.post("chat", "/api/v1/chat").addError(failure(Gone)))
  .add(HttpApiEndpoint.post("retrieve", "/api/v1/retrieve").addError(failure(Gone)))
  .annotateEndpoints(OpenReason, "They do nothing but say where the API is.")
