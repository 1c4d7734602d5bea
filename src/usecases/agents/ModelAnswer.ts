/** One question to the language model outside of a turn. The answer is a JSON object; a time-out is an error. */
import * as Prompt from "@effect/ai/Prompt"
import * as Data from "effect/Data"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import { type ModelRuntimeService, wholeReply } from "../../capabilities/ModelRuntime.ts"
import type { JsonObject, JsonValue } from "../../domain/Text.ts"
import * as StructuredReply from "../chat/StructuredReply.ts"

/** Time-out of the whole answer. */
export const timeout = Duration.seconds(30)
/** Maximum UTF-16 units of an answer that are read. */
const maxAnswerLength = 65_536

export interface ModelUsage {
  readonly inputTokens: number
  readonly outputTokens: number
  /** Billionths of a US dollar; null when the price is unknown. */
  readonly costNano: number | null
}

const noUsage: ModelUsage = { inputTokens: 0, outputTokens: 0, costNano: null }

/** Why there is no answer, without text from the provider, and the tokens used. */
export class NoAnswer extends Data.TaggedError("NoAnswer")<{
  readonly reason: string
  readonly used: ModelUsage
}> {}

const noAnswer = (reason: string, used: ModelUsage = noUsage) => new NoAnswer({ reason, used })

/**
 * Asks the model about `data`, which the prompt marks as data only. Returns an object that fits `schema`; `parameters`
 * is that schema as JSON Schema. Fails without a language model.
 */
export const ask = Effect.fn("ModelAnswer.ask")(function* <A, I>(
  runtime: ModelRuntimeService,
  model: string | null,
  instructions: string,
  data: JsonValue,
  parameters: JsonObject,
  schema: Schema.Schema<A, I>
) {
  if (runtime.readsPassages) return yield* noAnswer("no language model is configured")
  const prompt = Prompt.fromMessages([
    Prompt.systemMessage({ content: `${instructions}\n${StructuredReply.rule(parameters)}` }),
    Prompt.userMessage({ content: [Prompt.textPart({ text: JSON.stringify(data) })] })
  ])
  const request = { model, prompt, tools: [], question: "", passages: [], responseSchema: parameters }
  const { bill, text, ...tokens } = yield* wholeReply(runtime.reply(request), maxAnswerLength).pipe(
    Effect.tapError(({ message, reason }) =>
      Effect.logWarning("The model did not answer").pipe(Effect.annotateLogs({ reason, cause: message }))
    ),
    Effect.mapError(() => noAnswer("the model failed")),
    Effect.timeoutFail({ duration: timeout, onTimeout: () => noAnswer("the model did not answer in time") })
  )
  const used: ModelUsage = { ...tokens, costNano: bill?.cost ?? null }
  const read = StructuredReply.read(parameters, text, null)
  if (Either.isLeft(read)) return yield* noAnswer("the model's answer cannot be read", used)
  const value = yield* Schema.decode(Schema.parseJson(schema))(read.right.reply).pipe(
    Effect.mapError(() => noAnswer("the model's answer cannot be read", used))
  )
  return { value, used }
})
