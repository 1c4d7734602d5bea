/** Runs `work` when the browser is idle, so that it does not delay rendering. Returns a function that cancels it. */
export const whenIdle = (work: () => void): (() => void) => {
  // Some browsers do not have it.
  if (typeof requestIdleCallback !== "function") {
    const timer = setTimeout(work, 1_000)
    return () => clearTimeout(timer)
  }
  const handle = requestIdleCallback(work)
  return () => cancelIdleCallback(handle)
}
