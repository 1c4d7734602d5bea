/** The `WWW-Authenticate: Bearer` challenge of a server (RFC 6750). */

/** Characters of the longest header that is read. */
const maxHeaderCharacters = 8_192

/** The parameter `name` of the challenge; null when there is none. */
export const challenged = (header: string | undefined, name: string): string | null => {
  if (header === undefined || header.length > maxHeaderCharacters) return null
  if (!/(?:^|[\s,])bearer(?:\s|,|$)/i.test(header)) return null
  // Whole parameters are read, so that a quoted text cannot contain one.
  for (const [, found, quoted, plain] of header.matchAll(/([\w-]{1,40})=(?:"([^"\\]*)"|([^\s,"]+))/g)) {
    if (found?.toLowerCase() === name) return quoted ?? plain ?? null
  }
  return null
}
