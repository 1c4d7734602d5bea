/**
 * Runs before each test file. `layer` of @effect/vitest overwrites `effect` and `scoped` of the `it` that all files of a
 * process share. Tests after it, also in the next file, would run under that layer, which may be closed.
 */
import { setImmediate as nextTurnOfLoop } from "node:timers/promises"
import { effect, flakyTest, it, layer, live, prop, scoped, scopedLive } from "@effect/vitest"
import { afterEach } from "vitest"

/** Restores the methods of `it`. */
export const restoreIt = (): void => {
  Object.assign(it, { effect, flakyTest, layer, live, prop, scoped, scopedLive })
}

restoreIt()

// Tests that never wait leave the runner's messages unread. After a minute the run fails with "Timeout calling
// onTaskUpdate", although every test has passed.
afterEach(() => nextTurnOfLoop())
