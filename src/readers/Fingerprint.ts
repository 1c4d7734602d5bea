/** Digests that detect equal and nearly equal texts. */
import { createHash } from "node:crypto"
import type { ReadDocument } from "./Reader.ts"

type FingerprintedText = Pick<ReadDocument, "title" | "content" | "format">

/** Equal only for the same title, format and content. */
export const digestOf = ({ title, content, format }: FingerprintedText): string =>
  createHash("sha256").update(`${format}\n${title}\n${content}`).digest("base64")

/**
 * Minimum number of words. Shorter texts are only compared exactly, because a single word may be an important
 * difference.
 */
const minWords = 60
/**
 * Maximum number of characters. Longer texts are only compared exactly: hashing takes a while, and pages of that length
 * are rarely nearly equal.
 */
const maxCharacters = 500_000
/** Maximum number of different bits, of 64: about one word in two hundred. */
const maxDifferentBits = 3

const offset = 0x811c9dc5
const prime = 0x01000193

/** Mixes the FNV-1a hash of a shingle. */
const mixHash = (value: number): number => {
  let mix = Math.imul(value ^ (value >>> 16), 0x85ebca6b)
  mix = Math.imul(mix ^ (mix >>> 13), 0xc2b2ae35)
  return mix ^ (mix >>> 16)
}

const seeds = [0, 0x9e3779b9] as const
/** Each byte of a lane counts one bit. The counts are added up before a byte overflows. */
const maxLaneCount = 255

/** For each of the 32 bits, the number of codes in which it is set. */
const countBits = (codes: Int32Array): Uint32Array => {
  const counts = new Uint32Array(32)
  const lanes = new Uint32Array(8)
  for (let from = 0; from < codes.length; from += maxLaneCount) {
    lanes.fill(0)
    for (const code of codes.subarray(from, from + maxLaneCount)) {
      for (let lane = 0; lane < 8; lane++) lanes[lane] = (lanes[lane] ?? 0) + ((code >>> lane) & 0x01010101)
    }
    for (let bit = 0; bit < 32; bit++) {
      counts[bit] = (counts[bit] ?? 0) + (((lanes[bit % 8] ?? 0) >>> (bit - (bit % 8))) & 0xff)
    }
  }
  return counts
}

/** SimHash over shingles of three words. Texts that share nearly all of them differ in few bits. */
const simHash = (words: ReadonlyArray<string>): string => {
  const text = words.join(" ")
  const shingles = words.length - 2
  const halves = seeds.map((seed) => {
    const codes = new Int32Array(shingles)
    let begin = 0
    let end = (words[0]?.length ?? 0) + 1 + (words[1]?.length ?? 0)
    for (let at = 0; at < shingles; at++) {
      end += 1 + (words[at + 2]?.length ?? 0)
      let value = offset ^ seed
      for (let place = begin; place < end; place++) value = Math.imul(value ^ text.charCodeAt(place), prime)
      codes[at] = mixHash(value)
      begin += (words[at]?.length ?? 0) + 1
    }
    return countBits(codes)
  })
  let bits = 0n
  for (const [half, counts] of halves.entries()) {
    for (const [bit, count] of counts.entries()) {
      if (count * 2 > shingles) bits |= 1n << BigInt(half * 32 + bit)
    }
  }
  return bits.toString(16).padStart(16, "0")
}

const normalizedTitle = (title: string): string => title.toLowerCase().replace(/\s+/gu, " ").trim()

const word = /[\p{L}\p{N}]+/gu
/** An equivalent pattern for ASCII text, which takes half the time. */
const ascii = /^[\0-\x7f]*$/
const asciiWord = /[a-z0-9]+/g

/** The title's hash and the SimHash of the text, `title:bits`; empty for very short and very long texts. */
export const fingerprintOf = ({ title, content }: FingerprintedText): string => {
  if (content.length > maxCharacters) return ""
  const words = content.toLowerCase().match(ascii.test(content) ? asciiWord : word) ?? []
  if (words.length < minWords) return ""
  const name = createHash("sha256").update(normalizedTitle(title)).digest("hex").slice(0, 16)
  return `${name}:${simHash(words)}`
}

const bitsIn = (code: number): number => {
  let bits = 0
  for (let rest = code; rest !== 0; rest &= rest - 1) bits++
  return bits
}

/** Number of different bits of two numbers of 16 hexadecimal digits. */
const bitsBetween = (a: string, b: string): number =>
  [0, 8].reduce((bits, at) => {
    const [one = 0, other = 0] = [a, b].map((text) => Number.parseInt(text.slice(at, at + 8), 16))
    return bits + bitsIn(one ^ other)
  }, 0)

/** True for two texts with the same title that hardly differ. Similar pages with different titles are both kept. */
export const isNear = (a: string, b: string): boolean => {
  const [titleA, bitsA] = a.split(":")
  const [titleB, bitsB] = b.split(":")
  if (bitsA === undefined || bitsB === undefined || titleA !== titleB) return false
  return bitsBetween(bitsA, bitsB) <= maxDifferentBits
}
