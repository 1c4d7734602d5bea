/**
 * One span a request, named by its route's pattern: what stands in an address, a header or a body stays out of it. The
 * caller's `traceparent` is gone on with. Where nothing is traced this costs one look.
 */
import * as HttpTraceContext from "@effect/platform/HttpTraceContext"
import type * as Headers from "@effect/platform/Headers"
import * as Effect from "effect/Effect"
import * as FiberRef from "effect/FiberRef"
import { globalValue } from "effect/GlobalValue"
import * as Option from "effect/Option"
import * as Random from "effect/Random"

/** Part of the requests that is traced, from 0 to 1; a caller who sends `traceparent` has decided it. */
export const sampling: FiberRef.FiberRef<number> = globalValue("spoke/http/Span/sampling", () =>
  FiberRef.unsafeMake(1)
)

/** Asked all the time, or open for hours. */
const uninteresting = new Set(["/healthz", "/readyz", "/metrics", "/api/realtime"])

export interface Request {
  readonly method: string
  readonly headers: () => Headers.Headers
}

/** `pattern` is asked only for a request that is traced; null when no route has the address. */
export const around =
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
      const drawn =
        caller === undefined ? (yield* Random.next) < (yield* FiberRef.get(sampling)) : caller.sampled
      const route = yield* pattern
      if (!drawn || uninteresting.has(route ?? "")) return yield* Effect.withTracerEnabled(app, false)
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
