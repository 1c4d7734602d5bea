import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import { Agents } from "../../../usecases/agents/Agents.ts"
import { ChatTurn } from "../../../usecases/chat/ChatTurn.ts"
import { noFiles } from "../../../usecases/chat/TurnOptions.ts"
import { Api } from "../../Api.ts"
import { CurrentKey } from "../../Auth.ts"
import * as EventStream from "../../EventStream.ts"
import { RequestId } from "../../server/RequestId.ts"
import * as Completion from "./Completion.ts"

const streamHeaders = { "cache-control": "no-cache, no-transform", "x-accel-buffering": "no" }

export const layer = HttpApiBuilder.group(Api, "openai", (handlers) =>
  Effect.gen(function* () {
    const turns = yield* ChatTurn
    const agents = yield* Agents
    return handlers
      .handle("completions", ({ payload }) =>
        Effect.gen(function* () {
          const key = yield* CurrentKey
          const { history, request } = yield* Completion.turnOf(key, payload)
          const turn = yield* turns.start(key, request, "api", { files: noFiles, history })
          const head = yield* Completion.head(key.agentId, turn.runId, yield* RequestId)
          if (payload.stream !== true) return yield* Completion.complete(head, turn)
          const includeUsage = payload.stream_options?.include_usage === true
          const makeWriter = () => new Completion.ChunkWriter(head, turn.runId, includeUsage)
          return HttpServerResponse.stream(EventStream.bytes(turn.parts, makeWriter), {
            contentType: "text/event-stream",
            headers: { ...streamHeaders, ...(turn.runId === null ? {} : { "x-run-id": turn.runId }) }
          })
        })
      )
      .handle("models", () =>
        Effect.gen(function* () {
          const key = yield* CurrentKey
          const { createdAt, id, name } = yield* agents.get(key, key.agentId)
          const created = Math.floor(DateTime.toEpochMillis(createdAt) / 1_000)
          return {
            object: "list" as const,
            data: [{ id, object: "model" as const, created, owned_by: "spoke", name }]
          }
        })
      )
  })
)
