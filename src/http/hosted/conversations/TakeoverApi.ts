/** Humans who answer in place of an agent. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as Schema from "effect/Schema"
import {
  Conflict,
  FileTooLarge,
  NotFound,
  PayloadTooLarge,
  ServiceUnavailable,
  UnsupportedAttachmentType,
  UnsupportedType,
  ValidationError
} from "../../../domain/Errors.ts"
import { MessageId } from "../../../domain/Ids.ts"
import { trimmed } from "../../../domain/Text.ts"
import { ManageAuth, Managed, RequiredRole, SessionAuth } from "../../Auth.ts"
import { failure, success } from "../../Envelope.ts"
import { conversationPath } from "../../public/conversations/ConversationsApi.ts"
import { HostedConversation } from "./ConversationsApi.ts"

const One = success(Schema.Struct({ conversation: HostedConversation }))

/** `AI_ACTIVE` or `HUMAN_REQUESTED` → `HUMAN_ACTIVE`: what the agent is writing is not said. */
const takeover = HttpApiEndpoint.post("takeover", "/conversations/:id/takeover")
  .setPath(conversationPath)
  .addSuccess(One)
  .addError(failure(NotFound, Conflict, ServiceUnavailable))
  .annotate(RequiredRole, "agent")

/** `HUMAN_ACTIVE` or `HUMAN_REQUESTED` → `AI_ACTIVE`: the agent answers what is written from now on. */
const release = HttpApiEndpoint.post("release", "/conversations/:id/release")
  .setPath(conversationPath)
  .addSuccess(One)
  .addError(failure(NotFound, Conflict, ServiceUnavailable))
  .annotate(RequiredRole, "agent")

/** Any other state → `CLOSED`, for good. */
const close = HttpApiEndpoint.post("close", "/conversations/:id/close")
  .setPath(conversationPath)
  .addSuccess(One)
  .addError(failure(NotFound, Conflict, ServiceUnavailable))
  .annotate(RequiredRole, "agent")

/** Body of a message. */
export const Said = Schema.Struct({ content: trimmed(32_000) })

/**
 * Says something as the signed-in user, who has taken over with it; sent where the conversation came in by a channel. JSON,
 * or `multipart/form-data` with `files` and, unless they say enough, `content`.
 */
const say = HttpApiEndpoint.post("say", "/conversations/:id/messages")
  .setPath(conversationPath)
  .setPayload(Said)
  .addSuccess(success(Schema.Struct({ conversation: HostedConversation, messageId: MessageId })), {
    status: 201
  })
  .addError(
    failure(
      ValidationError,
      NotFound,
      Conflict,
      UnsupportedType,
      UnsupportedAttachmentType,
      FileTooLarge,
      PayloadTooLarge,
      ServiceUnavailable
    )
  )
  .annotate(RequiredRole, "agent")

const takeovers = <const Id extends string>(id: Id) =>
  HttpApiGroup.make(id).add(takeover).add(release).add(close).add(say)

export class TakeoverApi extends takeovers("takeover").prefix("/api").middleware(SessionAuth) {}

export class ManagedTakeoverApi extends takeovers("managedTakeover")
  .prefix("/api/manage/v1")
  .middleware(ManageAuth)
  .annotateEndpoints(Managed, "conversations") {}
