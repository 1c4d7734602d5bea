/** The origins that are meant by what was typed, one a line: people paste whole addresses and leave out the `https://`. */
export const originsOf = (typed: string): ReadonlyArray<string> =>
  typed
    .split(/[\s,]+/)
    .filter((text) => text !== "")
    .map((text) => {
      const address = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `https://${text}`
      // What is no address goes as it is: the service says what is wrong with it.
      return URL.canParse(address) && /^https?:/i.test(address) ? new URL(address).origin : text
    })
