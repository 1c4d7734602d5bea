/** The browser's storage. Every access may throw, because storage is blocked or full; then nothing is kept. */

/** Null if there is none. */
export const stored = (key: string): string | null => {
  try {
    return localStorage.getItem(key)
  } catch {
    return null
  }
}

export const store = (key: string, text: string): void => {
  try {
    localStorage.setItem(key, text)
  } catch {
    // The page shows it until it is left.
  }
}

export const unstore = (key: string): void => {
  try {
    localStorage.removeItem(key)
  } catch {
    // Nothing was kept.
  }
}

export const storedKeys = (): ReadonlyArray<string> => {
  try {
    return Object.keys(localStorage)
  } catch {
    return []
  }
}
