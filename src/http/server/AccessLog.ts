/** One line of the log for each request that was answered, where `SPOKE_ACCESS_LOG` asks for it. */
import * as Effect from "effect/Effect"
import * as FiberRef from "effect/FiberRef"
import { globalValue } from "effect/GlobalValue"

/** Whether lines are written. */
export const enabled: FiberRef.FiberRef<boolean> = globalValue("spoke/http/AccessLog/enabled", () =>
  FiberRef.unsafeMake(false)
)

/** Asked all the time. */
const uninteresting = new Set(["/healthz", "/readyz", "/metrics"])

/**
 * `route` is the pattern, null where no route has the address; `millis` is how long the answer took to begin. The id, the
 * method and the path of the request stand in the line as in every other; what stands behind a question mark does not.
 */
export const write = (route: string | null, status: number, millis: number): Effect.Effect<void> =>
  Effect.withFiberRuntime((fiber) =>
    fiber.getFiberRef(enabled) && !uninteresting.has(route ?? "")
      ? Effect.logInfo("Request").pipe(
          Effect.annotateLogs({ route: route ?? "none", status, durationMs: Math.round(millis * 10) / 10 })
        )
      : Effect.void
  )
