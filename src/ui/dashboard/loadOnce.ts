/**
 * Calls `load` once, and again only after a failure. All callers get the same promise, which also waits for the style
 * sheets of the code. A second `import()` would not wait for style sheets that the first one is still loading.
 */
export const loadOnce = <A>(load: () => Promise<A>): (() => Promise<A>) => {
  let loading: Promise<A> | undefined
  return () => {
    if (loading === undefined) {
      loading = load()
      loading.catch(() => {
        loading = undefined
      })
    }
    return loading
  }
}
