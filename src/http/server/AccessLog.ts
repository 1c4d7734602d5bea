/** The access log: one line per answered request, when `SPOKE_ACCESS_LOG` is set. */
import * as Effect from "effect/Effect"
import * as FiberRef from "effect/FiberRef"
import { globalValue } from "effect/GlobalValue"

/** True when lines are written. */
export const enabled: FiberRef.FiberRef<boolean> = globalValue("spoke/http/AccessLog/enabled", () =>
  FiberRef.unsafeMake(false)
)

/** Paths that are polled constantly and not logged. */
const uninteresting = new Set(["/healthz", "/readyz", "/metrics"])

/**
 * `route` is the pattern, null when no route matches; `millis` is the time until the response began. The line has the
 * request's id, method and path like every other, without the query string.
 */
export const write = (route: string | null, status: number, millis: number): Effect.Effect<void> =>
  Effect.withFiberRuntime((fiber) =>
    fiber.getFiberRef(enabled) && !uninteresting.has(route ?? "")
      ? Effect.logInfo("Request").pipe(
          Effect.annotateLogs({ route: route ?? "none", status, durationMs: Math.round(millis * 10) / 10 })
        )
      : Effect.void
  )
