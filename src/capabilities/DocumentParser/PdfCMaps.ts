/**
 * Predefined CMaps of East Asian fonts, to which a PDF refers by name. They map the codes of a text to glyphs (CIDs), and
 * these to characters. The PDF library comes without Adobe's files, and the package that has them, pdfjs-dist, takes 38 MB.
 * So this makes maps from the encodings that `TextDecoder` knows. Their CIDs are above Adobe's, so that fonts whose glyphs
 * are numbered by Adobe get no wrong characters.
 */

/** Adobe's collections of characters. */
const collections = ["Japan1", "GB1", "CNS1", "Korea1"] as const
type Collection = (typeof collections)[number]
type Encoding = "shift_jis" | "euc-jp" | "gb18030" | "big5" | "euc-kr"

/** Together they have the characters of the collection. */
const encodings: Readonly<Record<Collection, ReadonlyArray<Encoding>>> = {
  Japan1: ["shift_jis", "euc-jp"],
  GB1: ["gb18030"],
  CNS1: ["big5"],
  Korea1: ["euc-kr"]
}

/** Higher than any CID of Adobe's collections. */
const firstCid = 0x8000
const lastCid = 0xffff

interface Character {
  readonly code: number
  /** Of the code. */
  readonly bytes: 1 | 2
  /** UTF-16. */
  readonly unit: number
}

/** Characters of one or two bytes. */
const charactersOf = (encoding: Encoding): ReadonlyArray<Character> => {
  const decoder = new TextDecoder(encoding)
  const found: Array<Character> = []
  const add = (code: number, bytes: ReadonlyArray<number>): boolean => {
    const text = decoder.decode(Uint8Array.from(bytes))
    if (text.length !== 1 || text === "\ufffd") return false
    found.push({ code, bytes: bytes.length === 1 ? 1 : 2, unit: text.charCodeAt(0) })
    return true
  }
  for (let first = 0; first < 0x100; first++) {
    if (add(first, [first])) continue
    for (let second = 0x21; second < 0x100; second++) add(first * 0x100 + second, [first, second])
  }
  return found
}

/** CIDs of the collection by UTF-16 unit. */
const cidsOf = (collection: Collection): ReadonlyMap<number, number> => {
  const cids = new Map<number, number>()
  for (const { unit } of encodings[collection].flatMap(charactersOf)) {
    if (!cids.has(unit) && firstCid + cids.size <= lastCid) cids.set(unit, firstCid + cids.size)
  }
  return cids
}

const hex = (value: number, bytes: 1 | 2): string => `<${value.toString(16).padStart(2 * bytes, "0")}>`

/** First and last of each row of consecutive numbers. `numbers` are in order. */
const rangesOf = (numbers: Iterable<number>): ReadonlyArray<readonly [first: number, last: number]> => {
  const ranges: Array<readonly [number, number]> = []
  for (const number of numbers) {
    const [first, last] = ranges.at(-1) ?? []
    if (first !== undefined && last === number - 1) ranges[ranges.length - 1] = [first, number]
    else ranges.push([number, number])
  }
  return ranges
}

/** A CMap of codes of one and two bytes, in order. */
const codesToCids = (characters: ReadonlyArray<Character>, cids: ReadonlyMap<number, number>): string => {
  const codes = (size: 1 | 2) => characters.filter(({ bytes }) => bytes === size).map(({ code }) => code)
  const spaces = [
    ...rangesOf(codes(1)).map(([first, last]) => `${hex(first, 1)} ${hex(last, 1)}`),
    ...rangesOf(new Set(codes(2).map((code) => code >> 8))).map(
      ([first, last]) => `${hex(first * 0x100, 2)} ${hex(last * 0x100 + 0xff, 2)}`
    )
  ]
  const chars = characters.flatMap(({ bytes, code, unit }) => {
    const cid = cids.get(unit)
    return cid === undefined ? [] : [`${hex(code, bytes)} ${cid}`]
  })
  return `begincodespacerange ${spaces.join(" ")} endcodespacerange begincidchar ${chars.join(" ")} endcidchar`
}

/** Adobe's CIDs become NUL, which is no text. Without an entry the library would take the CID for a character. */
const cidsToCharacters = (cids: ReadonlyMap<number, number>): string => {
  const adobe = Array.from({ length: firstCid }, (_, cid) => `${hex(cid, 2)} <0000>`)
  const own = [...cids].map(([unit, cid]) => `${hex(cid, 2)} ${hex(unit, 2)}`)
  return `begincodespacerange <0000> <ffff> endcodespacerange beginbfchar ${[...adobe, ...own].join(" ")} endbfchar`
}

const unicodeCollections: Readonly<Record<string, Collection>> = {
  JIS: "Japan1",
  JIS2004: "Japan1",
  GB: "GB1",
  CNS: "CNS1",
  KS: "Korea1"
}

/** By the name without the direction. `isSevenBit`: both bytes are without their highest bit. */
const legacy: ReadonlyArray<readonly [RegExp, Collection, Encoding, isSevenBit?: boolean]> = [
  [/RKSJ/, "Japan1", "shift_jis"],
  [/^(?:78-)?EUC$/, "Japan1", "euc-jp"],
  [/^(?:H|V|78|Ext|Add)$/, "Japan1", "euc-jp", true],
  [/^GB(?:pc)?-EUC$|^GBKp?-EUC$|^GBK2K$/, "GB1", "gb18030"],
  [/^GB$/, "GB1", "gb18030", true],
  [/B5(?:pc)?$/, "CNS1", "big5"],
  [/^KSC(?:pc)?-EUC$|^KSCms-UHC/, "Korea1", "euc-kr"],
  [/^KSC$/, "Korea1", "euc-kr", true]
]

const sevenBit = (characters: ReadonlyArray<Character>): ReadonlyArray<Character> =>
  characters
    .filter(({ bytes, code }) => bytes === 2 && (code & 0x8080) === 0x8080)
    .map((character) => ({ ...character, code: character.code & 0x7f7f }))

/** The CMap as the text of a file; undefined for other names. */
const cMap = (name: string): string | undefined => {
  const collection = collections.find((each) => name === `Adobe-${each}-UCS2`)
  if (collection !== undefined) return cidsToCharacters(cidsOf(collection))
  const mode = name.endsWith("V") ? "/WMode 1 def " : ""
  const [, script] = /^Uni([A-Z]{2,3}(?:2004)?)-(?:UCS2|UTF16)(?:-HW)?-[HV]$/.exec(name) ?? []
  const unicode = script === undefined ? undefined : unicodeCollections[script]
  if (unicode !== undefined) {
    const cids = cidsOf(unicode)
    const characters = [...cids.keys()]
      .toSorted((a, b) => a - b)
      .map((unit) => ({ code: unit, bytes: 2 as const, unit }))
    return mode + codesToCids(characters, cids)
  }
  const bare = name.replace(/-[HV]$/, "")
  const [, of, encoding, isSevenBit = false] = legacy.find(([pattern]) => pattern.test(bare)) ?? []
  if (of === undefined || encoding === undefined) return undefined
  const characters = charactersOf(encoding)
  return mode + codesToCids(isSevenBit ? sevenBit(characters) : characters, cidsOf(of))
}

/** Gives the library the CMaps that it asks for. */
export class PredefinedCMaps {
  readonly fetch = ({ filename, kind }: { readonly filename: string; readonly kind: string }) => {
    const map = kind === "cMapUrl" ? cMap(filename) : undefined
    return map === undefined
      ? Promise.reject(new Error("Documents are read offline"))
      : Promise.resolve(new TextEncoder().encode(map))
  }
}
