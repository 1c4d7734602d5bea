/**
 * Runs `work` once the browser has nothing else to do, so that it delays nothing that is shown. Returns a function that
 * cancels it.
 */
export const whenIdle = (work: () => void): (() => void) => {
  // Not in every browser.
  if (typeof requestIdleCallback !== "function") {
    const timer = setTimeout(work, 1_000)
    return () => clearTimeout(timer)
  }
  const handle = requestIdleCallback(work)
  return () => cancelIdleCallback(handle)
}
