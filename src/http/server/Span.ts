/**
 * One span per request, named after its route's pattern. It contains nothing of addresses, headers or bodies. The
 * caller's `traceparent` is continued. Without tracing this costs one lookup.
 */
import * as HttpTraceContext from "@effect/platform/HttpTraceContext"
import type * as Headers from "@effect/platform/Headers"
import * as Effect from "effect/Effect"
import * as FiberRef from "effect/FiberRef"
import { globalValue } from "effect/GlobalValue"
import * as Option from "effect/Option"
import * as Random from "effect/Random"

/** Share of requests that are traced, from 0 to 1. A caller's `traceparent` overrides it. */
export const sampleRatio: FiberRef.FiberRef<number> = globalValue("spoke/http/Span/sampling", () =>
  FiberRef.unsafeMake(1)
)

/** Routes that are polled constantly, or open for hours. */
const untracedRoutes = new Set(["/healthz", "/readyz", "/metrics", "/api/realtime"])

export interface Request {
  readonly method: string
  readonly headers: () => Headers.Headers
}

/** Runs a request in its span. `pattern` is evaluated only for traced requests; null when no route matches. */
export const withRequestSpan =
  <A>(
    { headers, method }: Request,
    requestId: string,
    pattern: Effect.Effect<string | null>,
    statusOf: (answer: A) => number
  ) =>
  <E, R>(app: Effect.Effect<A, E, R>) =>
    Effect.gen(function* () {
      if (!(yield* FiberRef.get(FiberRef.currentTracerEnabled))) return yield* app
      const caller = Option.getOrUndefined(HttpTraceContext.fromHeaders(headers()))
      const isSampled =
        caller === undefined ? (yield* Random.next) < (yield* FiberRef.get(sampleRatio)) : caller.sampled
      const route = yield* pattern
      if (!isSampled || untracedRoutes.has(route ?? "")) return yield* Effect.withTracerEnabled(app, false)
      const attributes = {
        "http.request.method": method,
        ...(route === null ? {} : { "http.route": route }),
        "spoke.request_id": requestId
      }
      const parent = caller === undefined ? { root: true } : { parent: caller }
      const options = { kind: "server", captureStackTrace: false, attributes, ...parent } as const
      return yield* Effect.useSpan(route === null ? method : `${method} ${route}`, options, (span) =>
        Effect.tap(Effect.withParentSpan(app, span), (answer) =>
          Effect.sync(() => span.attribute("http.response.status_code", statusOf(answer)))
        )
      )
    })
