/** Access to local storage without exceptions: storage may be blocked or full. Then nothing is stored. */

/** Null if nothing is stored. */
export const readStored = (key: string): string | null => {
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
    // The value applies until the page is closed.
  }
}

export const removeStored = (key: string): void => {
  try {
    localStorage.removeItem(key)
  } catch {
    // Nothing was stored.
  }
}

export const storedKeys = (): ReadonlyArray<string> => {
  try {
    return Object.keys(localStorage)
  } catch {
    return []
  }
}
