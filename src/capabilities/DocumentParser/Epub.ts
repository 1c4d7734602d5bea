/** EPUB: the chapters in reading order, each extracted like a web page. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { ParseError, type ParsedDocument, type ParseLimits } from "../DocumentParser.ts"
import { type Container, openContainer, partName } from "./Container.ts"
import { parseHtml } from "./Html.ts"
import { attribute, scan } from "../../domain/Xml.ts"
import { oneLine } from "./PlainText.ts"

const malformed = new ParseError({
  code: "malformed",
  message: "The book is damaged or incomplete. Save it again and upload the new file."
})
const encrypted = new ParseError({
  code: "encrypted",
  message: "The book is encrypted. Upload a copy without copy protection."
})
const tooLong = new ParseError({
  code: "too_large",
  message: "The book has too much text for one document. Split it into several files."
})
const tooManyChapters = (chapters: number, max: number) =>
  new ParseError({
    code: "too_many_pages",
    message: `The book has ${chapters} chapters, and at most ${max} are read. Split it into several files.`
  })

const isChapter = /\.x?html?$/i

/** Fonts are often obfuscated, which does not affect the text. Encrypted chapters do. */
const isEncrypted = (container: Container): boolean => {
  let found = false
  scan(container.text("META-INF/encryption.xml"), {
    open: (name, tag) => {
      if (name === "CipherReference") found ||= isChapter.test(attribute(tag, "URI"))
    },
    close: () => undefined,
    text: () => undefined
  })
  return found
}

const packagePart = (container: Container): string => {
  let part = ""
  scan(container.text("META-INF/container.xml"), {
    open: (name, tag) => {
      if (name === "rootfile") part ||= partName("", attribute(tag, "full-path"))
    },
    close: () => undefined,
    text: () => undefined
  })
  return part
}

interface Book {
  readonly title: string
  /** Names of parts in reading order. */
  readonly chapters: ReadonlyArray<string>
}

const decodedName = (href: string): string => {
  try {
    return decodeURIComponent(href)
  } catch {
    return href
  }
}

const readPackage = (part: string, xml: string): Book => {
  const items = new Map<string, string>()
  const chapters = new Set<string>()
  let title = ""
  let inTitle = false
  scan(xml, {
    open: (name, tag) => {
      if (name === "title") inTitle = title === ""
      else if (name === "item") {
        const isNavigation = attribute(tag, "properties").split(" ").includes("nav")
        if (!isNavigation)
          items.set(attribute(tag, "id"), partName(part, decodedName(attribute(tag, "href"))))
      } else if (name === "itemref") {
        const chapter = items.get(attribute(tag, "idref"))
        if (chapter !== undefined) chapters.add(chapter)
      }
    },
    close: (name) => {
      if (name === "title") inTitle = false
    },
    text: (text) => {
      if (inTitle) title += text
    }
  })
  return { title: oneLine(title), chapters: [...chapters] }
}

const chapterBlock = (title: string, content: string): string =>
  content.startsWith("#") || title === "" || content === "" ? content : `# ${title}\n\n${content}`

const isNeeded = (name: string): boolean => /\.(?:x?html?|opf|xml)$|^mimetype$/i.test(name)

/** `title` is empty when the book has none. An unreadable chapter is skipped when others can be read. */
export const parseEpub = (
  bytes: Uint8Array,
  { maxPages, maxCharacters }: ParseLimits
): Effect.Effect<Pick<ParsedDocument, "title" | "format" | "content">, ParseError> =>
  Effect.gen(function* () {
    const container = yield* openContainer(bytes, isNeeded)
    if (isEncrypted(container)) return yield* encrypted
    const part = packagePart(container)
    const xml = container.text(part)
    if (xml === "") return yield* malformed
    const { title, chapters } = readPackage(part, xml)
    if (chapters.length > maxPages) return yield* tooManyChapters(chapters.length, maxPages)
    const blocks: Array<string> = []
    let length = 0
    let failure: ParseError | undefined
    for (const chapter of chapters) {
      const text = container.text(chapter)
      if (text.trim() === "") continue
      const read = yield* Effect.either(parseHtml(text, undefined))
      if (Either.isLeft(read)) {
        failure ??= read.left
        continue
      }
      const block = chapterBlock(read.right.title, read.right.content)
      length += block.length
      if (length > maxCharacters) return yield* tooLong
      if (block !== "") blocks.push(block)
    }
    if (blocks.length === 0 && failure !== undefined) return yield* failure
    return { title, format: "markdown" as const, content: blocks.join("\n\n") }
  })
