/** The access log: one line per answered request, when `SPOKE_ACCESS_LOG` is set. */
import * as Effect from "effect/Effect"
import * as FiberRef from "effect/FiberRef"
import { globalValue } from "effect/GlobalValue"

/** True if lines are written. */
export const enabled: FiberRef.FiberRef<boolean> = globalValue("spoke/http/AccessLog/enabled", () =>
  FiberRef.unsafeMake(false)
)

/** Routes that are polled constantly and therefore not logged. */
const unloggedRoutes = new Set(["/healthz", "/readyz", "/metrics"])

/** True if each request is logged or traced, for which it needs a fiber. */
export const isLoggedOrTraced: Effect.Effect<boolean> = Effect.zipWith(
  FiberRef.get(FiberRef.currentTracerEnabled),
  FiberRef.get(enabled),
  (isTraced, isLogged) => isTraced || isLogged
)

/**
 * `route` is the pattern, null when no route matches; `millis` is the time until the response began. The line has the
 * request's id, method and path like every other, without the query string.
 */
export const write = (route: string | null, status: number, millis: number): Effect.Effect<void> =>
  Effect.withFiberRuntime((fiber) =>
    fiber.getFiberRef(enabled) && !unloggedRoutes.has(route ?? "")
      ? Effect.logInfo("Request").pipe(
          Effect.annotateLogs({ route: route ?? "none", status, durationMs: Math.round(millis * 10) / 10 })
        )
      : Effect.void
  )
