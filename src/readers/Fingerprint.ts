/** Which texts are the same, and which are nearly the same (contract 7). */
import { createHash } from "node:crypto"
import type { ReadDocument } from "./Reader.ts"

type Words = Pick<ReadDocument, "title" | "content" | "format">

/** Equal for the same title, form and words alone. */
export const digestOf = ({ title, content, format }: Words): string =>
  createHash("sha256").update(`${format}\n${title}\n${content}`).digest("base64")

/** Shorter texts are compared word for word alone: in few words a single one can be all the difference. */
const leastWords = 60
/** Of 64: about one word in two hundred. */
const mostBits = 3

const offset = 0x811c9dc5
const prime = 0x01000193

const hash = (text: string, seed: number): number => {
  let value = offset ^ seed
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), prime)
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b)
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35)
  return (value ^ (value >>> 16)) >>> 0
}

/** SimHash over three words at a time: texts that share nearly all of them differ in few bits. */
const simHash = (words: ReadonlyArray<string>): string => {
  const votes = new Int32Array(64)
  for (let at = 0; at + 3 <= words.length; at++) {
    const shingle = `${words[at]} ${words[at + 1]} ${words[at + 2]}`
    for (const [half, seed] of [
      [0, 0],
      [32, 0x9e3779b9]
    ] as const) {
      const code = hash(shingle, seed)
      for (let bit = 0; bit < 32; bit++) {
        const place = half + bit
        votes[place] = (votes[place] ?? 0) + ((code >>> bit) & 1 ? 1 : -1)
      }
    }
  }
  let bits = 0n
  for (const [place, vote] of votes.entries()) if (vote > 0) bits |= 1n << BigInt(place)
  return bits.toString(16).padStart(16, "0")
}

const normalized = (title: string): string => title.toLowerCase().replace(/\s+/gu, " ").trim()

/** The title's hash and the SimHash of the text, `title:bits`; empty for short texts. */
export const fingerprintOf = ({ title, content }: Words): string => {
  const words = content.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []
  if (words.length < leastWords) return ""
  const name = createHash("sha256").update(normalized(title)).digest("hex").slice(0, 16)
  return `${name}:${simHash(words)}`
}

const bitsBetween = (a: string, b: string): number => {
  let bits = 0
  for (let rest = BigInt(`0x${a}`) ^ BigInt(`0x${b}`); rest > 0n; rest &= rest - 1n) bits++
  return bits
}

/** True for two texts under one title that differ in next to nothing. Pages that are alike but are called differently stay. */
export const isNear = (a: string, b: string): boolean => {
  const [titleA, bitsA] = a.split(":")
  const [titleB, bitsB] = b.split(":")
  if (bitsA === undefined || bitsB === undefined || titleA !== titleB) return false
  return bitsBetween(bitsA, bitsB) <= mostBits
}
