/** Answers that are requested before the code that reads them has been loaded. Each is read once. */
const requested = new Map<string, Promise<Response | undefined>>()

/** Requests `address`, a path with its query. */
export const requestAhead = (address: string): void => {
  const answer = fetch(address, { credentials: "same-origin" }).then(
    (response) => (response.ok ? response : undefined),
    () => undefined
  )
  requested.set(address, answer)
}

/** The answer if `address` was requested ahead and the request succeeded. */
export const takeAhead = (address: string): Promise<Response | undefined> | undefined => {
  const answer = requested.get(address)
  requested.delete(address)
  return answer
}

/** Forgets all answers: something is about to change, or another person to sign in. */
export const dropAhead = (): void => requested.clear()
