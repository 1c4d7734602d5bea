/** Warnings about unknown field names, with a suggestion of the name that was probably meant. */

/** Maximum number of characters of a name that are compared. */
const maxNameLength = 32
/**
 * Names that may be repeated in a warning although no known name is close. Others may be secrets in the wrong place.
 */
const repeatable = /^[A-Za-z_-]{0,32}$/
/** Maximum number of characters of a path that are shown. */
const maxPathLength = 64

/** Ignores case and separators, because names differ in them more often than in their letters. */
const comparable = (name: string): string => name.toLowerCase().replaceAll(/[^a-z0-9]/g, "")

/** Edit distance: letters to add, remove or change to turn `one` into `other`. */
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
  const asked = comparable(name.slice(0, maxNameLength))
  if (asked === "") return undefined
  let found: string | undefined
  let fewestSteps = Math.min(3, Math.floor(asked.length / 3)) + 1
  for (const candidate of known) {
    const steps = distance(asked, comparable(candidate.slice(0, maxNameLength)))
    if (steps >= fewestSteps) continue
    fewestSteps = steps
    found = candidate
  }
  return found
}

/** Replaces characters that must not stand in a header. */
const printable = (name: string): string => name.replaceAll(/[^\w$.-]/g, "?")

/** `; did you mean topK?`, or an empty text where no known name is close. */
export const hint = (name: string, known: Iterable<string>): string => {
  const meant = closest(name, known)
  return meant === undefined ? "" : `; did you mean ${printable(meant)}?`
}

/** `unknown field top_k; did you mean topK?`, in ASCII of at most 200 characters; `path` leads to the object that has it. */
export const unknownField = (
  path: ReadonlyArray<string | number>,
  name: string,
  known: Iterable<string>
): string => {
  const meant = name.length > maxNameLength ? "" : hint(name, known)
  if (meant === "" && !repeatable.test(name)) return `unknown field of ${name.length} characters`
  const place = [...path, name].join(".")
  return `unknown field ${printable(place.length > maxPathLength ? name : place)}${meant}`
}
