/** Warnings about unknown field names, with a suggestion of the name that was probably meant. */

/** Maximum number of characters of a name that are compared. */
const maxNameLength = 32
/**
 * Names that a warning may contain although no known name is similar. Others are left out, because they may be secrets.
 */
const harmlessName = /^[A-Za-z_-]{0,32}$/
/** Maximum number of characters of a path that are shown. */
const maxPathLength = 64

/** The name without case and separators, in which misspelled names differ most often. */
const comparable = (name: string): string => name.toLowerCase().replaceAll(/[^a-z0-9]/g, "")

/** Edit distance: the number of letters to add, remove or change to turn `one` into `other`. */
const distance = (one: string, other: string): number => {
  let row = Array.from({ length: other.length + 1 }, (_, place) => place)
  for (let i = 1; i <= one.length; i++) {
    const next = [i]
    for (let j = 1; j <= other.length; j++) {
      const changed = (row[j - 1] ?? 0) + (one[i - 1] === other[j - 1] ? 0 : 1)
      next.push(Math.min(changed, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[other.length] ?? 0
}

/** The name in `known` closest to `name`, if it is close enough. */
const closest = (name: string, known: Iterable<string>): string | undefined => {
  const given = comparable(name.slice(0, maxNameLength))
  if (given === "") return undefined
  let best: string | undefined
  let bestDistance = Math.min(3, Math.floor(given.length / 3)) + 1
  for (const candidate of known) {
    const candidateDistance = distance(given, comparable(candidate.slice(0, maxNameLength)))
    if (candidateDistance >= bestDistance) continue
    bestDistance = candidateDistance
    best = candidate
  }
  return best
}

/** Replaces characters that a header must not contain. */
const printable = (name: string): string => name.replaceAll(/[^\w$.-]/g, "?")

/** `; did you mean topK?`, or an empty text if no known name is similar. */
export const hint = (name: string, known: Iterable<string>): string => {
  const meant = closest(name, known)
  return meant === undefined ? "" : `; did you mean ${printable(meant)}?`
}

/** `unknown field top_k; did you mean topK?`, in ASCII of at most 200 characters; `path` is that of its object. */
export const unknownField = (
  path: ReadonlyArray<string | number>,
  name: string,
  known: Iterable<string>
): string => {
  const meant = name.length > maxNameLength ? "" : hint(name, known)
  if (meant === "" && !harmlessName.test(name)) return `unknown field of ${name.length} characters`
  const place = [...path, name].join(".")
  return `unknown field ${printable(place.length > maxPathLength ? name : place)}${meant}`
}
