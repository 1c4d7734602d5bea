/** The listeners of a value outside React, for `useSyncExternalStore`. */
export const makeListeners = () => {
  const listeners = new Set<() => void>()
  return {
    /** Adds a listener. Returns a function that removes it. */
    listen: (listener: () => void) => {
      listeners.add(listener)
      return () => {
        listeners.delete(listener)
      }
    },
    /** Calls all listeners, after the value has changed. */
    notify: () => {
      for (const listener of listeners) listener()
    }
  }
}
