/** Adds `https://` to an address without a scheme. */
export const addressOf = (typed: string): string => {
  const text = typed.trim()
  return text === "" || /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `https://${text}`
}
