/**
 * Chat for clients of OpenAI's API: an agent is a model. Responses and errors have that API's format, without our
 * envelope.
 */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as OpenApi from "@effect/platform/OpenApi"
import { Completion, CompletionRequest, ModelList } from "../../../domain/chat/ChatCompletion.ts"
import {
  ConversationNotActive,
  ConversationNotFound,
  EndUserNotFound,
  NotFound,
  NotConfigured,
  RuntimeDataUnavailable,
  RuntimeTimeout,
  TurnFailed,
  TurnLimitExceeded
} from "../../../domain/Errors.ts"
import { AgentKeyAuth, RequiredPermission } from "../../Auth.ts"
import { failure, UpdatedAt } from "../../Envelope.ts"

const complete = HttpApiEndpoint.post("completions", "/v1/chat/completions")
  .setPayload(CompletionRequest)
  .addSuccess(Completion)
  .addError(
    failure(
      NotFound,
      ConversationNotFound,
      EndUserNotFound,
      ConversationNotActive,
      TurnLimitExceeded,
      NotConfigured,
      RuntimeDataUnavailable,
      TurnFailed,
      RuntimeTimeout
    )
  )
  .annotate(OpenApi.Summary, "Run a chat turn for a client of OpenAI's chat completions")
  .annotate(
    OpenApi.Description,
    "The last user message is the turn's message, earlier ones are its history. Nothing is stored, unless `store` is true or " +
      "`metadata.conversationId` names a conversation. With `stream: true` the answer is Server-Sent Events, ended by " +
      "`data: [DONE]`. Parameters that are not listed have no effect."
  )

const models = HttpApiEndpoint.get("models", "/v1/models")
  .addSuccess(ModelList)
  .addError(failure(NotFound))
  .annotate(OpenApi.Summary, "List the key's agent as a model")

export const CompletionsApi = HttpApiGroup.make("openai")
  .add(complete)
  .add(models)
  .annotate(UpdatedAt, "2026-11-22T00:00:00.000Z")
  .annotateEndpoints(RequiredPermission, "chat")
  .middleware(AgentKeyAuth)
