/** Which pages of a run are the same page: by address, by canonical address, word for word, and nearly so. */
import { isNear } from "./Fingerprint.ts"

/** Most addresses that one run remembers; a site that invents more is not followed further. */
const maxAddresses = 100_000

/** A document as it is compared with those before it. */
export interface Print {
  readonly uri: string
  readonly digest: string
  readonly fingerprint: string
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
  const titles = new Map<string, Array<Print>>()
  const nearest = ({ fingerprint }: Print): Print | undefined =>
    titles.get(fingerprint.slice(0, 16))?.find((other) => isNear(other.fingerprint, fingerprint))
  return {
    /** True the first time an address is seen. */
    isNew: (url: string): boolean => {
      if (addresses.has(url) || addresses.size >= maxAddresses) return false
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
      if (print.fingerprint !== "") {
        const title = print.fingerprint.slice(0, 16)
        const others = titles.get(title)
        if (others === undefined) titles.set(title, [print])
        else others.push(print)
      }
      return undefined
    }
  } as const
}
export type Folding = ReturnType<typeof makeFolding>
