/** Files that are uploaded, or found by a crawl. */
import { strToU8, zipSync } from "fflate"
import type { Random } from "../faults/Random.ts"
import { epubFiles, pptxFiles, xlsxFiles } from "../fixtures/documents/OfficeWriter.ts"
import { writePdf } from "../fixtures/documents/PdfWriter.ts"
import { yielded } from "../Steps.ts"
import { bytesOf, type Grown, jsonOf, textOf } from "./Grown.ts"
import { type Kind, kind, markdown, prose, tokens } from "./Kind.ts"

const uploader = "uploader"

interface Hints {
  readonly fileName?: string
  readonly url?: string
}

export const documents = (
  named: readonly [name: string, from: string, weight: number],
  make: (random: Random) => Grown<Uint8Array>,
  hints: Hints = {}
): Kind =>
  kind(named, make, ({ Document, Effect, Either }, bytes) => {
    const limits = { maxPages: 3_000, maxCharacters: 10_000_000 }
    return Effect.runPromise(
      Effect.map(Effect.either(Document.parseDocument({ bytes, ...hints }, limits)), Either.merge)
    )
  })

const latin1 = (text: Grown<string>): Grown<Uint8Array> => {
  return (factor) => Uint8Array.from(text(factor), (character) => character.charCodeAt(0) & 0xff)
}

const xml = tokens(
  "<¦>¦/¦</¦/>¦<!--¦-->¦<![CDATA[¦]]>¦&amp;¦&#65;¦&lol;¦ r=\"A1\"¦ s='1'¦=¦\"¦'¦text¦ ¦\n¦<?xml?>¦<!DOCTYPE a>"
)

/** One of the parts grows. */
const office =
  (files: Readonly<Record<string, string>>, special: ReadonlyArray<string>) =>
  (random: Random): Grown<Uint8Array> => {
    const part = random.pick(Object.keys(files))
    const grown = textOf(random, [...special, ...xml])
    const original = files[part] ?? ""
    // Behind the first element, so that the part stays what it is.
    const place = original.indexOf(">", original.startsWith("<?") ? original.indexOf("?>") + 2 : 0) + 1
    return (factor) => {
      const all = { ...files, [part]: original.slice(0, place) + grown(factor) + original.slice(place) }
      const packed = Object.entries(all).map(([name, text]) => [name, strToU8(text)] as const)
      return zipSync(Object.fromEntries(packed), { level: 0 })
    }
  }

const word = office(
  {
    "[Content_Types].xml":
      '<Types><Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>',
    "_rels/.rels":
      '<Relationships><Relationship Id="a" Type="x/officeDocument" Target="word/document.xml"/></Relationships>',
    "word/document.xml": "<w:document><w:body><w:p><w:t>Some words.</w:t></w:p></w:body></w:document>"
  },
  tokens(
    "<w:p>¦</w:p>¦<w:t>¦</w:t>¦<w:tbl>¦</w:tbl>¦<w:tr>¦</w:tr>¦<w:tc>¦</w:tc>¦<w:tab/>¦<w:br/>¦<w:numPr/>¦" +
      '<w:pStyle w:val="Heading1"/>¦word ¦|'
  )
)
const workbook = office(
  xlsxFiles(
    [
      { name: "A", rows: '<row><c t="s"><v>0</v></c><c><v>1.5</v></c></row>' },
      { name: "B", rows: '<row><c t="inlineStr"><is><t>x</t></is></c></row>' }
    ],
    { strings: "<si><t>shared</t></si>", styles: '<cellXfs><xf numFmtId="14"/></cellXfs>' }
  ),
  tokens(
    '<row>¦</row>¦<c r="B2">¦<c t="s">¦<c>¦</c>¦<v>¦</v>¦0¦1¦<si>¦</si>¦<t>¦</t>¦<rPh>¦</rPh>¦' +
      '<sheet name="A" r:id="rId1"/>¦<Relationship Id="rId1" Type="a/worksheet" Target="worksheets/sheet1.xml"/>¦' +
      '<numFmt numFmtId="200" formatCode="yyyy [h]"/>¦<xf numFmtId="200"/>¦long text of a cell'
  )
)
const presentation = office(
  pptxFiles([
    { file: 1, title: "One", body: ["a"], notes: "said" },
    { file: 2, title: "Two" }
  ]),
  tokens(
    "<p:sp>¦</p:sp>¦<a:p>¦</a:p>¦<a:t>¦</a:t>¦<a:tr>¦</a:tr>¦<a:tc>¦</a:tc>¦<p:ph type='title'/>¦words ¦" +
      "<p:graphicFrame>¦</p:graphicFrame>¦<mc:Fallback>¦</mc:Fallback>¦<p:sldId r:id='rId1'/>¦" +
      "<Relationship Id='rId1' Type='a/slide' Target='slides/slide1.xml'/>"
  )
)
const book = office(
  epubFiles("Book", [
    { file: "a.xhtml", title: "A", body: "<p>One</p>" },
    { file: "b.xhtml", title: "B", body: "<p>Two</p>" }
  ]),
  tokens(
    "<item id='x' href='a.xhtml'/>¦<itemref idref='x'/>¦<itemref idref='i-a.xhtml'/>¦<dc:title>¦</dc:title>¦" +
      "<rootfile full-path='OEBPS/content.opf'/>¦<p>¦</p>¦words "
  )
)
const pdf = tokens(
  "BT /F1 12 Tf 10 700 Td (Hello) Tj ET\n¦BT ¦ET ¦(a) Tj ¦(word-) Tj ¦0 -14 Td ¦T* ¦[(a) -200 (b)] TJ ¦q ¦Q ¦" +
    "1 0 0 1 0 0 cm ¦/F1 30 Tf ¦/F1 12 Tf ¦(\\(¦) ¦<41> ¦BI ¦ID ¦EI ¦1 ¦/a ¦<< ¦>> ¦[ ¦] "
)
/** How the files of some formats of pictures begin. */
const pictures = tokens(
  "\u0089PNG\r\n\u001a\n¦\u00ff\u00d8\u00ff¦GIF89a¦II*\u0000\u0008\u0000\u0000\u0000¦BM\0\0\0\0\0\0\0\0"
)

export const documentKinds: ReadonlyArray<Kind> = [
  documents(["Markdown", uploader, 4], (random) => bytesOf(textOf(random, markdown)), { fileName: "a.md" }),
  documents(["plain text", uploader, 4], (random) => bytesOf(textOf(random, markdown))),
  documents(["bytes of any encoding", uploader, 3], (random) =>
    latin1(
      textOf(
        random,
        tokens("a¦ ¦\0¦\u00e4¦\u0081¦\u001b$B¦\u00ff\u00fe¦charset=x¦<meta charset=¦\n¦{¦%PDF-¦BM")
      )
    )
  ),
  documents(
    ["CSV", uploader, 4],
    (random) => bytesOf(textOf(random, tokens('a¦b,¦,¦;¦\t¦"¦""¦\n¦\r\n¦value¦|¦ '))),
    { fileName: "a.csv" }
  ),
  documents(["JSON", uploader, 4], (random) => {
    const list = [{ name: "a", n: 1, deep: { er: ["x"] } }]
    const value = jsonOf(random, { list, text: "words", "long name": null })
    return bytesOf((factor) => JSON.stringify(value(factor)))
  }),
  documents(["Word document", uploader, 3], word),
  documents(["workbook", uploader, 3], workbook),
  documents(["presentation", uploader, 3], presentation),
  documents(["book", uploader, 0.5], book),
  documents(["PDF", uploader, 0.5], (random) => {
    const content = textOf(random, pdf)
    return (factor) => writePdf([[{ text: "One" }], []], { content: Buffer.from(content(factor), "latin1") })
  }),
  documents(["pages of a PDF", uploader, 0.3], (random) => {
    const text = random.pick(["One line of words", "word-", "", "# Head", "12"])
    const size = random.pick([11, 30])
    const line = (page: number) => ({ text: `${text} on page ${page}`, size })
    return (factor) =>
      writePdf(Array.from({ length: 8 * factor }, (_, page) => Array.from({ length: 6 }, () => line(page))))
  }),
  kind(
    ["ZIP of documents", uploader, 2],
    (random) => {
      const name = random.pick(["a.txt", "a", "b/c.md", "x".repeat(300)])
      const text = textOf(random, prose)
      const inText = random.below(2) === 0
      return (factor) => {
        const content = strToU8(text(inText ? factor : 1))
        const count = inText ? 3 : 12 * factor
        const files = Array.from({ length: count }, (_, at) => [`${at}${name}`, content] as const)
        return zipSync(Object.fromEntries(files), { level: 6 })
      }
    },
    ({ Effect, Zip }, archive) => {
      const read = Effect.flatMap(Zip.zipEntries(archive), (entries) =>
        Effect.forEach(entries, (entry) =>
          Effect.map(Zip.unzipEntry(archive, entry, 1e9), ({ length }) => length)
        )
      )
      return Effect.runPromise(Effect.either(read))
    }
  ),
  kind(
    ["text cut into chunks", uploader, 5],
    (random) => {
      const format = random.pick(["markdown", "text"] as const)
      const text = textOf(random, markdown)
      return (factor) => ({ title: "T", content: text(factor), format })
    },
    ({ IndexRow, Packer }, document) =>
      yielded(Packer.chunkSteps(document)).map(
        (chunk) => IndexRow.indexRow({ title: "T", english: true, ...chunk }).tsv.length
      )
  ),
  kind(
    ["head of a picture", uploader, 2],
    (random) => {
      const begin = random.pick(pictures)
      const text = textOf(random, tokens("\0¦\u00ff¦a¦\u0001\u0001¦\u00ff\u00d8¦\0\u0002"))
      return latin1((factor) => begin + text(factor))
    },
    ({ ImageHeader }, bytes) => {
      const format = ImageHeader.imageFormat(bytes)
      return format === undefined ? null : ImageHeader.imageSize(bytes, format)
    }
  )
]
