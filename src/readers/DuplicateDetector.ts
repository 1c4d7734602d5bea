/**
 * Detects duplicate pages of a run: by address, by canonical address, by exact content, and by nearly equal content.
 */
import { isNear } from "./Fingerprint.ts"

/**
 * Maximum number of addresses that one run stores, and of their characters. Further links of the site are not followed.
 */
const maxAddresses = 100_000
const maxAddressCharacters = 16_777_216
/**
 * Two fingerprints that differ in three bits have at least one of four parts in common, so a page is compared only with
 * those that share a part. The number of comparisons per part is bounded, because a site could make all of its pages
 * share one.
 */
const partOffsets = [0, 4, 8, 12]
const maxComparedPerPart = 8

/** The data of a document for comparison with earlier ones. */
export interface DocumentDigest {
  readonly uri: string
  readonly digest: string
  readonly fingerprint: string
}

interface Numbered {
  readonly document: DocumentDigest
  readonly number: number
}

/** The document that a page repeats, and how. */
export interface Repeat {
  readonly of: string
  readonly reason: "same_address" | "same_content" | "nearly_same_content"
}

/** Texts for a {@link Repeat}. */
export const repeatMessages: Readonly<Record<string, string>> = {
  same_address: "The page calls itself by the address of a document that is read already.",
  same_content: "The page is word for word the same as another document.",
  nearly_same_content: "The page has the title of another document and nearly the same words."
}

/** For one run and one fiber at a time. */
export const makeDuplicateDetector = () => {
  const addresses = new Set<string>()
  const uris = new Set<string>()
  const digests = new Map<string, string>()
  const byPart = new Map<string, Array<Numbered>>()
  let characters = 0
  let documentCount = 0
  /** Index keys of a fingerprint: its title and position with each part. */
  const partKeysOf = (fingerprint: string): ReadonlyArray<string> => {
    const [title = "", bits = ""] = fingerprint.split(":")
    return bits === "" ? [] : partOffsets.map((at) => `${title}:${at}:${bits.slice(at, at + 4)}`)
  }
  const remember = (document: DocumentDigest): void => {
    const numbered = { document, number: documentCount++ }
    for (const part of partKeysOf(document.fingerprint)) {
      const candidates = byPart.get(part)
      if (candidates === undefined) byPart.set(part, [numbered])
      else if (candidates.length < maxComparedPerPart) candidates.push(numbered)
    }
  }
  /** The first document that is nearly equal. */
  const firstNear = ({ fingerprint }: DocumentDigest): DocumentDigest | undefined =>
    partKeysOf(fingerprint)
      .flatMap((part) => byPart.get(part) ?? [])
      .filter(({ document }) => isNear(document.fingerprint, fingerprint))
      .reduce<Numbered | undefined>(
        (first, next) => (first === undefined || next.number < first.number ? next : first),
        undefined
      )?.document
  return {
    /** Records an address. True the first time it is seen; false, too, beyond the limits of a run. */
    markSeen: (url: string): boolean => {
      if (addresses.has(url) || addresses.size >= maxAddresses) return false
      if (characters + url.length > maxAddressCharacters) return false
      characters += url.length
      addresses.add(url)
      return true
    },
    /** The earlier document that this one repeats; undefined for a new one, which is recorded. */
    check: (document: DocumentDigest): Repeat | undefined => {
      addresses.add(document.uri)
      if (uris.has(document.uri)) return { of: document.uri, reason: "same_address" }
      const same = digests.get(document.digest)
      if (same !== undefined) return { of: same, reason: "same_content" }
      const near = firstNear(document)
      if (near !== undefined) return { of: near.uri, reason: "nearly_same_content" }
      uris.add(document.uri)
      digests.set(document.digest, document.uri)
      remember(document)
      return undefined
    }
  } as const
}
export type DuplicateDetector = ReturnType<typeof makeDuplicateDetector>
