/** Warnings about unknown names, with the one that was probably meant. */

/** Characters of a name that are compared. */
const maxNameLength = 32
/** Names that are repeated although no known one is close. Others may be secrets in the wrong place. */
const repeatable = /^[A-Za-z_-]{0,32}$/
/** Characters of a path that are shown. */
const maxPathLength = 64

/** Names differ in how their words are joined more often than in their letters. */
const plain = (name: string): string => name.toLowerCase().replaceAll(/[^a-z0-9]/g, "")

/** How many letters have to be added, left out or changed to make `other` of `one`. */
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

/** The name of `known` that is closest to `name`, when it is close. */
const closest = (name: string, known: Iterable<string>): string | undefined => {
  const asked = plain(name.slice(0, maxNameLength))
  if (asked === "") return undefined
  let found: string | undefined
  let least = Math.min(3, Math.floor(asked.length / 3)) + 1
  for (const candidate of known) {
    const steps = distance(asked, plain(candidate.slice(0, maxNameLength)))
    if (steps >= least) continue
    least = steps
    found = candidate
  }
  return found
}

/** What of a name can stand in a header. */
const shown = (name: string): string => name.replaceAll(/[^\w$.-]/g, "?")

/** `; did you mean topK?`, or nothing where no known name is close. */
export const hint = (name: string, known: Iterable<string>): string => {
  const meant = closest(name, known)
  return meant === undefined ? "" : `; did you mean ${shown(meant)}?`
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
  return `unknown field ${shown(place.length > maxPathLength ? name : place)}${meant}`
}
