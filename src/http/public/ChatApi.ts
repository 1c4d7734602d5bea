/** The chat turn. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as HttpApiSchema from "@effect/platform/HttpApiSchema"
import * as OpenApi from "@effect/platform/OpenApi"
import * as Schema from "effect/Schema"
import { ChatTurnResult, CompleteTurnRequest, StreamTurnRequest } from "../../domain/ChatTurn.ts"
import {
  ConversationNotActive,
  ConversationNotFound,
  EndUserNotFound,
  RuntimeDataUnavailable,
  RuntimeTimeout,
  TurnFailed,
  TurnLimitExceeded
} from "../../domain/Errors.ts"
import { AgentKeyAuth, RequiredPermission } from "../Auth.ts"
import { failure, success, UpdatedAt } from "../Envelope.ts"

const failures = failure(
  ConversationNotFound,
  EndUserNotFound,
  ConversationNotActive,
  TurnLimitExceeded,
  RuntimeDataUnavailable,
  TurnFailed,
  RuntimeTimeout
)

/** Server-Sent Events; what they carry is in `http/Sse`. */
const Events = Schema.String.pipe(
  HttpApiSchema.withEncoding({ kind: "Text", contentType: "text/event-stream" })
).annotations({ description: "AI SDK UI-message parts as Server-Sent Events, ended by `data: [DONE]`." })

const complete = HttpApiEndpoint.post("complete", "/v1/chat")
  .setPayload(CompleteTurnRequest)
  .addSuccess(success(ChatTurnResult))
  .addError(failures)
  .annotate(OpenApi.Summary, "Run a chat turn and return the complete reply")

const stream = HttpApiEndpoint.post("stream", "/v1/chat/stream")
  .setPayload(StreamTurnRequest)
  .addSuccess(Events)
  .addError(failures)
  .annotate(OpenApi.Summary, "Run a chat turn and stream the reply as it is written")
  .annotate(
    OpenApi.Description,
    "Whatever is refused before the turn begins is a JSON error; a failure after that is one `error` part. Only " +
      "`data-done` says that the turn is settled: do not repeat a turn whose stream was cut off."
  )

export const ChatApi = HttpApiGroup.make("chat")
  .add(complete)
  .add(stream)
  .annotate(UpdatedAt, "2026-11-21T00:00:00.000Z")
  .annotateEndpoints(RequiredPermission, "chat")
  .middleware(AgentKeyAuth)
