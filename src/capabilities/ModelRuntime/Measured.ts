/**
 * Measures each call to a provider: a metric, and a span with the attributes of OpenTelemetry's conventions for
 * generative AI. They contain neither prompt nor reply.
 */
import type * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as FiberRef from "effect/FiberRef"
import * as Stream from "effect/Stream"
import type * as Tracer from "effect/Tracer"
import * as ProviderMetrics from "../../concurrency/ProviderMetrics.ts"
import { monotonicMillis } from "../../domain/MonotonicClock.ts"
import type { ModelError, ModelPart, ModelRequest, ModelRuntimeService } from "../ModelRuntime.ts"

const outcomeOf = ({ reason }: ModelError): ProviderMetrics.Outcome =>
  reason === "RateLimited" ? "rate_limited" : reason === "TimedOut" ? "timed_out" : "failed"

/** Adds attributes to `span` as the answer arrives, because the span may end before the stream. */
const recordOn = (span: Tracer.Span, startedAt: number, now: () => number) => {
  let hasReceived = false
  return (parts: Chunk.Chunk<ModelPart>) => {
    if (!hasReceived) span.attribute("gen_ai.response.time_to_first_chunk", (now() - startedAt) / 1_000)
    hasReceived = true
    for (const part of parts) {
      if (part._tag !== "Finish") continue
      span.attribute("gen_ai.usage.input_tokens", part.inputTokens)
      span.attribute("gen_ai.usage.output_tokens", part.outputTokens)
      span.attribute("gen_ai.response.finish_reasons", [part.reason])
    }
    return parts
  }
}

/** Measures the calls of `inner` under the provider's configured name. */
export const measured = (provider: string, inner: ModelRuntimeService): ModelRuntimeService => {
  const call = { operation: "chat", provider } as const
  ProviderMetrics.register(call)

  const traced = (request: ModelRequest, model: string, startedAt: number) =>
    Stream.unwrap(
      Effect.gen(function* () {
        const clock = yield* Effect.clock
        const span = yield* Effect.orDie(Effect.currentSpan)
        const now = () => Number(clock.unsafeCurrentTimeNanos()) / 1e6
        return inner.reply(request).pipe(
          Stream.mapChunks(recordOn(span, startedAt, now)),
          Stream.tapError(({ reason }) => Effect.sync(() => span.attribute("error.type", reason)))
        )
      })
    ).pipe(
      Stream.withSpan(`chat ${model}`, {
        kind: "client",
        captureStackTrace: false,
        attributes: {
          "gen_ai.operation.name": "chat",
          "gen_ai.provider.name": provider,
          "gen_ai.request.model": model
        }
      })
    )

  const reply = (request: ModelRequest): Stream.Stream<ModelPart, ModelError> =>
    Stream.unwrap(
      Effect.gen(function* () {
        const startedAt = yield* monotonicMillis
        const isTraced = yield* FiberRef.get(FiberRef.currentTracerEnabled)
        const parts = isTraced
          ? traced(request, request.model ?? inner.defaultModel, startedAt)
          : inner.reply(request)
        return Stream.ensuringWith(parts, (exit) => ProviderMetrics.observe(call, startedAt, exit, outcomeOf))
      })
    )

  return { ...inner, reply }
}
