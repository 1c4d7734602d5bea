/**
 * Documents that are ZIP archives of XML: Office files and EPUB. Parts are read into memory within a total limit and
 * looked up by name. Names are never used as paths.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { unzipSync } from "fflate"
import { ParseError } from "../DocumentParser.ts"
import { decodeText } from "./Charset.ts"
import { attribute, scan } from "../../domain/Xml.ts"
import { MiB } from "../../domain/Bytes.ts"

/** Maximum total size of the unpacked parts: about 5,000 pages of Word. */
const maxBytes = 100 * MiB
/** Maximum number of parts. Reading a directory of millions would take too long. */
const maxParts = 20_000

const malformed = new ParseError({
  code: "malformed",
  message: "The document is damaged or incomplete. Save it again and upload the new file."
})
const tooLarge = new ParseError({
  code: "too_large",
  message: "The unpacked document is too large. Split it into several files."
})

export interface Container {
  /** The part as text, or empty when there is none. */
  readonly text: (name: string) => string
}

/**
 * The parts of `bytes` that `wanted` selects. The declared sizes, whether true or not, bound the output. The sum of the
 * packed sizes must not exceed the file: overlapping parts would let a small file be unpacked any number of times.
 */
const unpack = (bytes: Uint8Array, wanted: (name: string, size: number) => boolean) => {
  let unpackedBytesLeft = maxBytes
  let packedBytesLeft = bytes.length
  let parts = 0
  return unzipSync(bytes, {
    filter: ({ name, originalSize, size }) => {
      if (++parts > maxParts) throw tooLarge
      if (!wanted(name, originalSize)) return false
      unpackedBytesLeft -= originalSize
      packedBytesLeft -= size
      if (unpackedBytesLeft < 0) throw tooLarge
      if (packedBytesLeft < 0) throw malformed
      return true
    }
  })
}

/** Unpacks the parts that `wanted` selects. */
export const openContainer = (
  bytes: Uint8Array,
  wanted: (name: string) => boolean
): Effect.Effect<Container, ParseError> =>
  Effect.gen(function* () {
    const files = yield* Effect.try({
      try: () => unpack(bytes, wanted),
      catch: (error) => (error === tooLarge ? tooLarge : malformed)
    })
    const found = new Map(Object.entries(files))
    return {
      text: (name) => {
        const part = found.get(name)
        return part === undefined ? "" : decodeText(part, undefined, false)
      }
    }
  })

/** The name of the part that `target` in part `from` refers to. */
export const partName = (from: string, target: string): string => {
  const path = target.split("#", 1).join("")
  const start = path.startsWith("/") ? [] : from.split("/").slice(0, -1)
  const segments: Array<string> = []
  for (const segment of [...start, ...path.split("/")]) {
    if (segment === "..") segments.pop()
    else if (segment !== "" && segment !== ".") segments.push(segment)
  }
  return segments.join("/")
}

export interface Relationship {
  readonly id: string
  /** The last segment of the type's address, such as `slide`. */
  readonly type: string
  /** The name of a part. */
  readonly target: string
}

/** The relationships of a part of an Office file; `""` is the file itself. */
export const relationships = (container: Container, part: string): ReadonlyArray<Relationship> => {
  const at = part.lastIndexOf("/") + 1
  const found: Array<Relationship> = []
  scan(container.text(`${part.slice(0, at)}_rels/${part.slice(at)}.rels`), {
    open: (name, tag) => {
      if (name !== "Relationship" || attribute(tag, "TargetMode") === "External") return
      const type = attribute(tag, "Type").split("/").at(-1) ?? ""
      found.push({ id: attribute(tag, "Id"), type, target: partName(part, attribute(tag, "Target")) })
    },
    close: () => undefined,
    text: () => undefined
  })
  return found
}

/** The main part of the file; `fallback` when it is not declared. */
export const mainPart = (container: Container, fallback: string): string =>
  relationships(container, "").find(({ type }) => type === "officeDocument")?.target ?? fallback

export type ContainerKind = "docx" | "xlsx" | "pptx" | "epub"

const contentTypes: ReadonlyArray<readonly [RegExp, ContainerKind]> = [
  [/wordprocessingml\.document\.main\+xml|ms-word\.document\.macroEnabled\.main\+xml/, "docx"],
  [/spreadsheetml\.(?:sheet|template)\.main\+xml|ms-excel\.sheet\.macroEnabled\.main\+xml/, "xlsx"],
  [
    /presentationml\.(?:presentation|slideshow|template)\.main\+xml|ms-powerpoint\.presentation\.macroEnabled\.main\+xml/,
    "pptx"
  ]
]
const declarations = ["[Content_Types].xml", "mimetype"]
const maxDeclarationBytes = MiB

const unpackDeclarations = Option.liftThrowable((bytes: Uint8Array) =>
  unpack(bytes, (name, size) => declarations.includes(name) && size <= maxDeclarationBytes)
)

/** The kind of document in a ZIP, by its declarations. */
export const containerKind = (bytes: Uint8Array): ContainerKind | undefined => {
  if (bytes[0] !== 0x50 || bytes[1] !== 0x4b) return undefined
  const files = Option.getOrElse(unpackDeclarations(bytes), (): Record<string, Uint8Array> => ({}))
  const text = (name: string) => {
    const part = files[name]
    return part === undefined ? "" : decodeText(part, undefined, false)
  }
  if (text("mimetype").trim() === "application/epub+zip") return "epub"
  const types = text("[Content_Types].xml")
  return contentTypes.find(([pattern]) => pattern.test(types))?.[1]
}

/** Maximum length of a text that is repeated in the rows of a merged cell, in UTF-16 units. A longer one is no label. */
export const maxLabelLength = 200

/** A table of Markdown with its header. */
export const markdownTable = (
  head: ReadonlyArray<string>,
  rows: ReadonlyArray<ReadonlyArray<string>>
): string => {
  const line = (cells: ReadonlyArray<string>) => `| ${cells.join(" | ")} |`
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n")
}
