/** Runs: read their traces, stop or follow their turns. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as HttpApiSchema from "@effect/platform/HttpApiSchema"
import * as OpenApi from "@effect/platform/OpenApi"
import * as Schema from "effect/Schema"
import { optional } from "../../../domain/Optional.ts"
import { RunStatus, RunTrace } from "../../../domain/chat/AgentRun.ts"
import { ChatId } from "../../../domain/chat/UiChat.ts"
import { NotFound, ServiceUnavailable } from "../../../domain/Errors.ts"
import { RunId } from "../../../domain/Ids.ts"
import { limitParam, WholeNumber } from "../../../domain/Page.ts"
import { AgentKeyAuth, RequiredPermission } from "../../Auth.ts"
import { failure, success, textBody, UpdatedAt } from "../../Envelope.ts"

const Events = textBody("text/event-stream").annotations({
  description: "The stream of the turn, as `POST /v1/chat/stream` sends it."
})

const runPath = Schema.Struct({ runId: RunId })

export const AgentRunsApi = HttpApiGroup.make("agentRuns")
  .add(
    HttpApiEndpoint.get("trace", "/v1/agent-runs/:runId")
      .setPath(runPath)
      .setUrlParams(
        Schema.Struct({
          limit: limitParam(100),
          // A sequence, not an opaque cursor: positive integers as for limits.
          cursor: limitParam(Number.MAX_SAFE_INTEGER)
        })
      )
      .addSuccess(success(RunTrace))
      .addError(failure(NotFound, ServiceUnavailable))
      .annotate(RequiredPermission, "trace_read")
      .annotate(OpenApi.Summary, "Read the trace of a run")
      .annotate(
        OpenApi.Description,
        "Each read leaves an audit entry; where it cannot be written the answer is 503 and shows nothing."
      )
  )
  .add(
    HttpApiEndpoint.post("stop", "/v1/agent-runs/:runId/stop")
      .setPath(runPath)
      .addSuccess(success(Schema.Struct({ id: RunId, status: RunStatus })))
      .addError(failure(NotFound))
      .annotate(RequiredPermission, "chat")
      .annotate(OpenApi.Summary, "Stop a running turn and keep what it has said")
  )
  .add(
    HttpApiEndpoint.get("follow", "/v1/chat/stream/:runId")
      .setPath(runPath)
      .setUrlParams(Schema.Struct({ after: optional(WholeNumber) }))
      .addSuccess(Events)
      .addError(failure(NotFound))
      .annotate(RequiredPermission, "chat")
      .annotate(OpenApi.Summary, "Follow a turn again after its stream was cut off")
  )
  .add(
    HttpApiEndpoint.get("followChat", "/v1/chat/stream/:chatId/stream")
      .setPath(Schema.Struct({ chatId: ChatId }))
      .addSuccess(Events)
      .addSuccess(HttpApiSchema.NoContent.annotations({ description: "No turn of the chat is under way." }))
      .addError(failure(NotFound))
      .annotate(RequiredPermission, "chat")
      .annotate(OpenApi.Summary, "Follow the turn of a chat that is under way")
  )
  .annotate(UpdatedAt, "2026-11-22T00:00:00.000Z")
  .middleware(AgentKeyAuth)
