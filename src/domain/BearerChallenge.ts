/** The `WWW-Authenticate: Bearer` challenge of a server (RFC 6750). */

/** Characters of the longest header that is read. */
const maxHeaderCharacters = 8_192

/** The value of the parameter `name`; null if the header has no Bearer challenge with it. */
export const challengeParameter = (header: string | undefined, name: string): string | null => {
  if (header === undefined || header.length > maxHeaderCharacters) return null
  if (!/(?:^|[\s,])bearer(?:\s|,|$)/i.test(header)) return null
  // Whole parameters are matched, so that text within quotes is not mistaken for one.
  for (const [, parameter, quoted, plain] of header.matchAll(/([\w-]{1,40})=(?:"([^"\\]*)"|([^\s,"]+))/g)) {
    if (parameter?.toLowerCase() === name) return quoted ?? plain ?? null
  }
  return null
}
