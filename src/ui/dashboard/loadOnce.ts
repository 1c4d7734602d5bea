/**
 * Loads at the first call, and again only after a failure. All callers wait for the style sheets of the code too: a
 * second `import()` of a file does not wait for sheets that the first one is still loading.
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
