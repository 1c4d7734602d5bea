/** The chat turn. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as OpenApi from "@effect/platform/OpenApi"
import { CompleteTurnResult } from "../../../domain/chat/ChatTurn.ts"
import { CompleteTurnBody, StreamTurnBody } from "../../../domain/chat/UiChat.ts"
import {
  Conflict,
  ConversationNotActive,
  ConversationNotFound,
  EndUserNotFound,
  NotConfigured,
  RuntimeDataUnavailable,
  RuntimeTimeout,
  TurnFailed,
  TurnLimitExceeded
} from "../../../domain/Errors.ts"
import { IdempotencyHeader } from "../../../domain/IdempotencyKey.ts"
import { AgentKeyAuth, RequiredPermission } from "../../Auth.ts"
import { failure, success, textBody, UpdatedAt } from "../../Envelope.ts"

const failures = failure(
  ConversationNotFound,
  EndUserNotFound,
  ConversationNotActive,
  Conflict,
  TurnLimitExceeded,
  NotConfigured,
  RuntimeDataUnavailable,
  TurnFailed,
  RuntimeTimeout
)

const repeats =
  "A repeat with the same `Idempotency-Key` from the same API key, on either route, is answered by the turn that the first " +
  "one began, for 24 hours; with another body it is 409."

/** Server-Sent Events. `http/Sse` defines their content. */
const Events = textBody("text/event-stream").annotations({
  description: "AI SDK UI-message parts as Server-Sent Events, ended by `data: [DONE]`."
})

const complete = HttpApiEndpoint.post("complete", "/v1/chat")
  .setHeaders(IdempotencyHeader)
  .setPayload(CompleteTurnBody)
  .addSuccess(success(CompleteTurnResult))
  .addError(failures)
  .annotate(OpenApi.Summary, "Run a chat turn and return the complete reply")
  .annotate(OpenApi.Description, repeats)

const stream = HttpApiEndpoint.post("stream", "/v1/chat/stream")
  .setHeaders(IdempotencyHeader)
  .setPayload(StreamTurnBody)
  .addSuccess(Events)
  .addError(failures)
  .annotate(OpenApi.Summary, "Run a chat turn and stream the reply as it is written")
  .annotate(
    OpenApi.Description,
    "A refusal before the turn begins is a JSON error; a failure after that is one `error` part. Only " +
      "`data-done` says that the turn is settled: do not repeat a turn whose stream was cut off, unless it was sent with an " +
      `\`Idempotency-Key\`. ${repeats}`
  )

export const ChatApi = HttpApiGroup.make("chat")
  .add(complete)
  .add(stream)
  .annotate(UpdatedAt, "2026-11-22T00:00:00.000Z")
  .annotateEndpoints(RequiredPermission, "chat")
  .middleware(AgentKeyAuth)
