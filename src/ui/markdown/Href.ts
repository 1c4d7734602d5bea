/** The normalised address of a link; null for every unsafe scheme. */
export const safeHref = (address: string): string | null => {
  const text = address.trim()
  if (!/^(?:https?:\/\/|mailto:)[^\s<>"'`\\]+$/i.test(text)) return null
  try {
    const { href, protocol } = new URL(text)
    return ["http:", "https:", "mailto:"].includes(protocol) ? href : null
  } catch {
    return null
  }
}
