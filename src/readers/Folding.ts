/** Which pages of a run are the same page: by address, by canonical address, and word for word. */
import { createHash } from "node:crypto"
import type { ReadDocument } from "./Reader.ts"

/** Most addresses that one run remembers; a site that invents more is not followed further. */
const maxAddresses = 100_000

const digest = ({ title, content }: ReadDocument): string =>
  createHash("sha256").update(`${title}\n${content}`).digest("base64")

/** Belongs to one run and is used by one fiber at a time. */
export const makeFolding = () => {
  const addresses = new Set<string>()
  const documents = new Set<string>()
  return {
    /** True the first time an address is seen. */
    isNew: (url: string): boolean => {
      if (addresses.has(url) || addresses.size >= maxAddresses) return false
      addresses.add(url)
      return true
    },
    /** True for the first document of its address and its words; its address counts as seen. */
    isFirst: (document: ReadDocument): boolean => {
      const marks = [document.uri, digest(document)]
      const first = !marks.some((mark) => documents.has(mark))
      for (const mark of marks) documents.add(mark)
      addresses.add(document.uri)
      return first
    }
  }
}
