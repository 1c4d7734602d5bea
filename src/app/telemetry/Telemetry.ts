/**
 * Exports traces, logs and metrics (OTEL_EXPORTER_OTLP_ENDPOINT) by OTLP over HTTP. Without an address there is no
 * tracer and no span is created. Spans contain ids, statements without their values, and only kind and location of
 * failures. A slow or unavailable collector does not delay requests: the buffer is bounded, and what does not fit is
 * dropped.
 */
import { randomUUID } from "node:crypto"
import * as Otlp from "@effect/opentelemetry/Otlp"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpMiddleware from "@effect/platform/HttpMiddleware"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Tracer from "effect/Tracer"
import { isError } from "../../domain/ThrownErrors.ts"
import * as ProviderHttp from "../../capabilities/ModelRuntime/ProviderHttp.ts"
import { sampleRatio } from "../../http/server/Span.ts"
import * as Collector from "./Collector.ts"
import { baseUrl, choice, count, headerList, ratio, Value, variable } from "../config/ConfigValues.ts"
import * as Package from "../Package.ts"
import * as SqlSpans from "./SqlSpans.ts"

/** The telemetry variables of `app/config/Config`, and the port for health and metrics. */
export const variables = {
  SPOKE_HEALTH_PORT: variable(
    count(0, 65_535),
    "Further port for /healthz, /readyz and /metrics, also of workers; none by default, 0 uses a free one."
  ),
  SPOKE_ACCESS_LOG: variable(
    choice("enabled", "disabled"),
    "enabled: one line of the log for each request that is answered; disabled by default."
  ),
  OTEL_EXPORTER_OTLP_ENDPOINT: variable(
    baseUrl,
    "Base address of an OpenTelemetry collector (OTLP over HTTP); without it nothing is exported."
  ),
  OTEL_EXPORTER_OTLP_HEADERS: variable(
    headerList,
    "Headers for the collector, name=value, separated by commas; none by default."
  ),
  OTEL_SERVICE_NAME: variable(Value, "Name of this service there; spoke by default."),
  OTEL_TRACES_SAMPLER_ARG: variable(
    ratio,
    "Share of requests that is traced, from 0 to 1, unless the caller decides; 1 by default."
  )
}

interface TelemetryVariables {
  readonly OTEL_EXPORTER_OTLP_ENDPOINT?: string
  readonly OTEL_EXPORTER_OTLP_HEADERS?: Redacted.Redacted<Readonly<Record<string, string>>>
  readonly OTEL_SERVICE_NAME?: string
  readonly OTEL_TRACES_SAMPLER_ARG?: number
}

export interface Telemetry {
  readonly endpoint: string
  readonly headers: Redacted.Redacted<Readonly<Record<string, string>>>
  readonly service: string
  /** Sampling ratio, from 0 to 1. */
  readonly ratio: number
}

export const telemetryOf = (given: TelemetryVariables): Telemetry | null =>
  given.OTEL_EXPORTER_OTLP_ENDPOINT === undefined
    ? null
    : {
        endpoint: given.OTEL_EXPORTER_OTLP_ENDPOINT,
        headers: given.OTEL_EXPORTER_OTLP_HEADERS ?? Redacted.make({}),
        service: given.OTEL_SERVICE_NAME ?? "spoke",
        ratio: given.OTEL_TRACES_SAMPLER_ARG ?? 1
      }

/** Disables the framework's spans, which contain whole addresses and headers. `http/server/Span` creates ours. */
const disableFrameworkSpans = Layer.scopedDiscard(
  Effect.zipRight(
    Effect.locallyScoped(HttpMiddleware.currentTracerDisabledWhen, () => true),
    Effect.locallyScoped(HttpClient.currentTracerDisabledWhen, () => true)
  )
)

const kindOf = (failure: unknown): string => {
  if (typeof failure !== "object" || failure === null) return "Error"
  if ("_tag" in failure && typeof failure._tag === "string") return failure._tag
  return isError(failure) ? failure.name : "Error"
}

/** Kind and location of `failure`. Its message is left out, because it may quote a tool, a provider or a customer. */
const withoutMessage = (failure: unknown) => {
  const kind = kindOf(failure)
  const { message = "", stack = "" } = isError(failure) ? failure : {}
  // Lines of the message may look like stack frames.
  const frames = stack.slice(Math.max(0, stack.indexOf(message)) + message.length).split("\n")
  const frameLines = frames.filter((line) => /^\s{4}at .*:\d+:\d+\)?$/u.test(line))
  return Object.assign(new Error(kind), { name: kind, stack: [kind, ...frameLines].join("\n") })
}

const withoutMessages = (cause: Cause.Cause<unknown>): Cause.Cause<unknown> =>
  Cause.match(cause, {
    onEmpty: Cause.empty,
    onFail: (error) => Cause.fail(withoutMessage(error)),
    onDie: (defect) => Cause.die(withoutMessage(defect)),
    onInterrupt: Cause.interrupt,
    onSequential: Cause.sequential,
    onParallel: Cause.parallel
  })

/** Removes the messages of failures from spans when they end, and names database spans. */
const withoutFailureMessages = Layer.scopedDiscard(
  Effect.flatMap(Effect.tracer, (inner) =>
    Effect.withTracerScoped(
      Tracer.make({
        context: (run, fiber) => inner.context(run, fiber),
        span: (...given) => {
          const created = inner.span(...given)
          const span = given[0] === SqlSpans.librarySpanName ? SqlSpans.withStatementName(created) : created
          const { end } = span
          return Object.assign(span, {
            end: (at: bigint, exit: Exit.Exit<unknown, unknown>) =>
              Reflect.apply(end, span, [at, Exit.mapErrorCause(exit, withoutMessages)])
          })
        }
      })
    )
  )
)

export const layer = (telemetry: Telemetry | null) => {
  if (telemetry === null) return Layer.setTracerEnabled(false)
  const { endpoint, headers, ratio: samplingRatio, service } = telemetry
  return Layer.mergeAll(
    disableFrameworkSpans,
    Layer.scopedDiscard(Effect.locallyScoped(sampleRatio, samplingRatio)),
    withoutFailureMessages.pipe(
      Layer.provideMerge(
        Otlp.layerJson({
          baseUrl: endpoint,
          resource: {
            serviceName: service,
            serviceVersion: Package.version,
            attributes: { "service.instance.id": randomUUID() }
          },
          headers: Redacted.value(headers),
          maxBatchSize: 500,
          metricsExportInterval: "30 seconds",
          tracerExportInterval: "2 seconds"
        })
      ),
      Layer.provide(Collector.layer.pipe(Layer.provide(ProviderHttp.layer)))
    )
  )
}
