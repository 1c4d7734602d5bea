/** Listeners to a value outside of React, for `useSyncExternalStore`. */
export const makeListeners = () => {
  const listeners = new Set<() => void>()
  return {
    /** Adds a listener. The result removes it. */
    listen: (listener: () => void) => {
      listeners.add(listener)
      return () => {
        listeners.delete(listener)
      }
    },
    /** Calls all listeners: the value has changed. */
    notify: () => {
      for (const listener of listeners) listener()
    }
  }
}
