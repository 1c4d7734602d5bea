/**
 * Globs on a whole URL: `*` (and `**`) stands for any characters, slashes included, `?` for exactly one, and
 * everything else for itself, case included. A pattern that begins with `/` is compared with path and query instead. No
 * regular expression: a match takes time linear in the URL for each piece between two stars.
 */
interface Glob {
  readonly pattern: string
  readonly ofPath: boolean
  /** What stands between the stars. */
  readonly pieces: ReadonlyArray<string>
}

const compile = (pattern: string): Glob => ({
  pattern,
  ofPath: pattern.startsWith("/"),
  pieces: pattern.split(/\*+/)
})

const fits = (text: string, at: number, piece: string): boolean => {
  if (at < 0 || at + piece.length > text.length) return false
  for (let place = 0; place < piece.length; place++) {
    const wanted = piece.charAt(place)
    if (wanted !== "?" && wanted !== text.charAt(at + place)) return false
  }
  return true
}

const indexOf = (text: string, piece: string, from: number): number => {
  if (!piece.includes("?")) return text.indexOf(piece, from)
  for (let at = from; at + piece.length <= text.length; at++) if (fits(text, at, piece)) return at
  return -1
}

const matchesPieces = (text: string, pieces: ReadonlyArray<string>): boolean => {
  const [first = "", ...rest] = pieces
  const last = rest.pop()
  if (last === undefined) return text.length === first.length && fits(text, 0, first)
  if (!fits(text, 0, first)) return false
  let at = first.length
  // The leftmost place for each piece leaves the most room for the others.
  for (const piece of rest) {
    const found = indexOf(text, piece, at)
    if (found === -1) return false
    at = found + piece.length
  }
  return text.length - last.length >= at && fits(text, text.length - last.length, last)
}

const matches = (url: URL, { ofPath, pieces }: Glob): boolean =>
  matchesPieces(ofPath ? url.pathname + url.search : url.href, pieces)

/** True when `pattern` matches `url`, an absolute URL without fragment. */
export const matchesGlob = (url: string, pattern: string): boolean => matches(new URL(url), compile(pattern))

export interface Patterns {
  readonly includePatterns?: ReadonlyArray<string>
  readonly excludePatterns?: ReadonlyArray<string>
}

/** Whether a URL belongs to a source, and the pattern that decided; null where none did. */
export interface Verdict {
  readonly included: boolean
  readonly reason: "excluded" | "not_included" | null
  readonly pattern: string | null
}

/** Judges URLs: exclude wins; without include patterns everything else belongs. */
export const judge = ({ includePatterns = [], excludePatterns = [] }: Patterns) => {
  const include = includePatterns.map(compile)
  const exclude = excludePatterns.map(compile)
  return (href: string): Verdict => {
    const url = new URL(href)
    const refused = exclude.find((glob) => matches(url, glob))
    if (refused !== undefined) return { included: false, reason: "excluded", pattern: refused.pattern }
    const taken = include.find((glob) => matches(url, glob))
    if (taken === undefined && include.length > 0)
      return { included: false, reason: "not_included", pattern: null }
    return { included: true, reason: null, pattern: taken?.pattern ?? null }
  }
}

/** Which URLs belong to a source, as {@link judge} says. */
export const selector = (patterns: Patterns) => {
  const verdict = judge(patterns)
  return (href: string): boolean => verdict(href).included
}
