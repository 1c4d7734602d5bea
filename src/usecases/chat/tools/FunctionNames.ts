/** Names of functions in the form that providers accept. */
import { createHash } from "node:crypto"

const maxNameCharacters = 64
const hashCharacters = 8
/** Characters of a name before its hash. */
const maxPrefixCharacters = maxNameCharacters - hashCharacters - 1

const shortened = (name: string): string => name.replaceAll(/[^\w-]/g, "_").slice(0, maxNameCharacters)

const withHash = (name: string): string => {
  const hash = createHash("sha256").update(name).digest("hex").slice(0, hashCharacters)
  return `${shortened(name).slice(0, maxPrefixCharacters)}_${hash}`
}

/**
 * A name for each of `names`, in their order. Different names that would become the same one get a hash, whatever their
 * order.
 */
export const functionNames = (names: ReadonlyArray<string>): ReadonlyArray<string> => {
  const longNames = new Map<string, Set<string>>()
  for (const name of names) {
    const short = shortened(name)
    longNames.set(short, (longNames.get(short) ?? new Set()).add(name))
  }
  return names.map((name) => {
    const short = shortened(name)
    return name === short || longNames.get(short)?.size === 1 ? short : withHash(name)
  })
}

/** Whether a function of this name may be one of the tool: named like it, or with it as a prefix. */
export const isFunctionOf = (tool: string, name: string): boolean =>
  name === tool || name.startsWith(`${tool}_`.slice(0, maxPrefixCharacters))
