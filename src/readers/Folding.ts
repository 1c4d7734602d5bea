/** Which pages of a run are the same page: by address, by canonical address, word for word, and nearly so. */
import { isNear } from "./Fingerprint.ts"

/** Most addresses that one run remembers, and their characters; a site that invents more is not followed further. */
const maxAddresses = 100_000
const maxAddressCharacters = 16_777_216
/**
 * Two fingerprints that differ in three bits have one of four parts in common, so that a page is compared with those that
 * share a part alone: this many of each part, for a site could make all of its pages share one.
 */
const parts = [0, 4, 8, 12]
const maxSharers = 8

/** A document as it is compared with those before it. */
export interface Print {
  readonly uri: string
  readonly digest: string
  readonly fingerprint: string
}

interface Numbered {
  readonly print: Print
  readonly number: number
}

/** Which document a page repeats, and in what way. */
export interface Repeat {
  readonly of: string
  readonly reason: "same_address" | "same_content" | "nearly_same_content"
}

/** What to tell about a {@link Repeat}. */
export const repeatWords: Readonly<Record<string, string>> = {
  same_address: "The page calls itself by the address of a document that is read already.",
  same_content: "The page is word for word the same as another document.",
  nearly_same_content: "The page has the title of another document and nearly the same words."
}

/** Belongs to one run and is used by one fiber at a time. */
export const makeFolding = () => {
  const addresses = new Set<string>()
  const uris = new Set<string>()
  const digests = new Map<string, string>()
  const sharers = new Map<string, Array<Numbered>>()
  let characters = 0
  let prints = 0
  /** Under one title, by where they stand. */
  const partsOf = (fingerprint: string): ReadonlyArray<string> => {
    const [title = "", bits = ""] = fingerprint.split(":")
    return bits === "" ? [] : parts.map((at) => `${title}:${at}:${bits.slice(at, at + 4)}`)
  }
  const remember = (print: Print): void => {
    const numbered = { print, number: prints++ }
    for (const part of partsOf(print.fingerprint)) {
      const others = sharers.get(part)
      if (others === undefined) sharers.set(part, [numbered])
      else if (others.length < maxSharers) others.push(numbered)
    }
  }
  /** The first of those that are nearly the same. */
  const nearest = ({ fingerprint }: Print): Print | undefined =>
    partsOf(fingerprint)
      .flatMap((part) => sharers.get(part) ?? [])
      .filter(({ print }) => isNear(print.fingerprint, fingerprint))
      .reduce<Numbered | undefined>(
        (first, next) => (first === undefined || next.number < first.number ? next : first),
        undefined
      )?.print
  return {
    /** True the first time an address is seen. */
    isNew: (url: string): boolean => {
      if (addresses.has(url) || addresses.size >= maxAddresses) return false
      if (characters + url.length > maxAddressCharacters) return false
      characters += url.length
      addresses.add(url)
      return true
    },
    /** The earlier document that this one repeats; none for the first of its kind, whose address counts as seen. */
    fold: (print: Print): Repeat | undefined => {
      addresses.add(print.uri)
      if (uris.has(print.uri)) return { of: print.uri, reason: "same_address" }
      const same = digests.get(print.digest)
      if (same !== undefined) return { of: same, reason: "same_content" }
      const near = nearest(print)
      if (near !== undefined) return { of: near.uri, reason: "nearly_same_content" }
      uris.add(print.uri)
      digests.set(print.digest, print.uri)
      remember(print)
      return undefined
    }
  } as const
}
export type Folding = ReturnType<typeof makeFolding>
