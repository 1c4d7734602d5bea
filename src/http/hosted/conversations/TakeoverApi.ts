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
import { IdempotencyHeader } from "../../../domain/IdempotencyKey.ts"
import { MessageId } from "../../../domain/Ids.ts"
import { trimmed } from "../../../domain/Text.ts"
import { managed, RequiredRole, SessionAuth } from "../../Auth.ts"
import { failure, success } from "../../Envelope.ts"
import { conversationPath } from "../../public/conversations/ConversationsApi.ts"
import { HostedConversation } from "./ConversationsApi.ts"

const One = success(Schema.Struct({ conversation: HostedConversation }))

/** `AI_ACTIVE` or `HUMAN_REQUESTED` → `HUMAN_ACTIVE`. A reply that the agent is writing is not sent. */
const takeover = HttpApiEndpoint.post("takeover", "/conversations/:id/takeover")
  .setPath(conversationPath)
  .addSuccess(One)
  .addError(failure(NotFound, Conflict, ServiceUnavailable))
  .annotate(RequiredRole, "agent")

/** `HUMAN_ACTIVE` or `HUMAN_REQUESTED` → `AI_ACTIVE`. The agent answers later messages. */
const release = HttpApiEndpoint.post("release", "/conversations/:id/release")
  .setPath(conversationPath)
  .addSuccess(One)
  .addError(failure(NotFound, Conflict, ServiceUnavailable))
  .annotate(RequiredRole, "agent")

/** Any other state → `CLOSED`, which is final. */
const close = HttpApiEndpoint.post("close", "/conversations/:id/close")
  .setPath(conversationPath)
  .addSuccess(One)
  .addError(failure(NotFound, Conflict, ServiceUnavailable))
  .annotate(RequiredRole, "agent")

/** Body of a message. */
export const MessageBody = Schema.Struct({ content: trimmed(32_000) })

/**
 * Sends a message as the signed-in user, who also takes the conversation over. It is sent through the channel of the
 * conversation, if it has one. JSON, or `multipart/form-data` with `files` and optional `content`.
 */
const say = HttpApiEndpoint.post("say", "/conversations/:id/messages")
  .setPath(conversationPath)
  .setHeaders(IdempotencyHeader)
  .setPayload(MessageBody)
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

export class ManagedTakeoverApi extends managed(takeovers("managedTakeover"), "conversations") {}
