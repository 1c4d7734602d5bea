/**
 * Before each test file. `layer` of @effect/vitest writes its own `effect` and `scoped` on the one `it` of the process,
 * so that what comes after it, in the next file too, would run under that layer, closed or without the test clock.
 */
import { setImmediate as nextTurnOfLoop } from "node:timers/promises"
import { effect, flakyTest, it, layer, live, prop, scoped, scopedLive } from "@effect/vitest"
import { afterEach } from "vitest"

/** Gives `it` its own methods back. */
export const restoreIt = (): void => {
  Object.assign(it, { effect, flakyTest, layer, live, prop, scoped, scopedLive })
}

restoreIt()

// Tests that never wait leave the runner's answers unread: after a minute of them the run fails with "Timeout calling
// onTaskUpdate", though every test passed.
afterEach(() => nextTurnOfLoop())
