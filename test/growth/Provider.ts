/** A provider's answer read as a runtime reads it, without a network. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import * as Prompt from "@effect/ai/Prompt"
import {
  type Answered,
  StreamingPost,
  type StreamingPostService
} from "../../src/capabilities/StreamingPost.ts"
import { ModelRuntime } from "../../src/capabilities/ModelRuntime.ts"
import * as ChatCompletions from "../../src/capabilities/ModelRuntime/ChatCompletions.ts"
import * as Responses from "../../src/capabilities/ModelRuntime/Responses.ts"

const answer = (pieces: ReadonlyArray<Uint8Array>): Answered => {
  let next = 0
  const take = () => {
    const piece = pieces[next++]
    return piece === undefined ? null : [piece]
  }
  return {
    status: 200,
    headers: { "content-type": "text/event-stream" },
    read: Effect.sync(take),
    noTokensLeft: Effect.void
  }
}

const runtimes = { chat: ChatCompletions.layer, responses: Responses.layer }
const options = { apiKey: Redacted.make("key"), baseUrl: "http://127.0.0.1:1", defaultModel: "model" }

/** How much of the answer was text, and how many parts it came in. */
export const answered = (
  form: keyof typeof runtimes,
  pieces: ReadonlyArray<Uint8Array>
): Promise<unknown> => {
  const service: StreamingPostService = { post: () => Effect.sync(() => answer(pieces)) }
  const read = Effect.gen(function* () {
    const runtime = yield* ModelRuntime
    let text = 0
    let parts = 0
    const request = {
      model: null,
      prompt: Prompt.fromMessages([Prompt.systemMessage({ content: "Be brief." })]),
      tools: [],
      question: "",
      passages: []
    }
    const ended = yield* Effect.either(
      Stream.runForEach(runtime.reply(request), (part) =>
        Effect.sync(() => {
          parts++
          if (part._tag === "TextDelta") text += part.delta.length
        })
      )
    )
    return [text, parts, Either.isRight(ended)]
  })
  return Effect.runPromise(
    Effect.provide(read, Layer.provide(runtimes[form](options), Layer.succeed(StreamingPost, service)))
  )
}
