/** Inputs that once took work, or memory, out of all proportion to their size; named by who sends them. */
import { createHash } from "node:crypto"
import { strToU8, zipSync } from "fflate"
import { beforeAll, describe, expect, it } from "vitest"
import { pack, pptxFiles, xlsxFiles } from "../fixtures/documents/OfficeWriter.ts"
import { type Counting, counting, growthOf, isLinear, type Subject } from "./Growth.ts"

let m: Counting

beforeAll(async () => {
  m = await counting()
})

const subject = <A>(made: Subject<A>): Subject<A> => made
const bytes = (text: string) => new TextEncoder().encode(text)
const limits = { maxPages: 3_000, maxCharacters: 10_000_000 }

const document = (make: (size: number) => Uint8Array, hints: { readonly fileName?: string } = {}) =>
  subject({
    make,
    run: ({ Document, Effect, Either }, input) =>
      Effect.runPromise(
        Effect.map(Effect.either(Document.parseDocument({ bytes: input, ...hints }, limits)), Either.merge)
      )
  })

const word = (body: string) =>
  zipSync(
    {
      "[Content_Types].xml": strToU8(
        '<Types><Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>'
      ),
      "word/document.xml": strToU8(`<w:document><w:body>${body}</w:body></w:document>`)
    },
    { level: 0 }
  )

/** `archive` with so many more entries that all lie where its entry `name` does. */
const overlapping = (archive: Uint8Array, name: string, count: number): Uint8Array => {
  const view = new DataView(archive.buffer, archive.byteOffset, archive.byteLength)
  const end = archive.length - 22
  const start = view.getUint32(end + 16, true)
  let at = start
  const lengthAt = (place: number) => view.getUint16(place + 28, true)
  const nameAt = (place: number) =>
    new TextDecoder().decode(archive.subarray(place + 46, place + 46 + lengthAt(place)))
  while (nameAt(at) !== name)
    at += 46 + lengthAt(at) + view.getUint16(at + 30, true) + view.getUint16(at + 32, true)
  const record = archive.slice(at, at + 46)
  const copies = Array.from({ length: count }, (_, place) => {
    const title = bytes(`copy${place}.xml`)
    const copy = new Uint8Array(46 + title.length)
    copy.set(record)
    copy.set(title, 46)
    const fields = new DataView(copy.buffer)
    fields.setUint16(28, title.length, true)
    fields.setUint32(30, 0, true)
    return copy
  })
  const ending = archive.slice(end)
  const entries = view.getUint16(end + 10, true) + count
  const last = new DataView(ending.buffer)
  last.setUint16(8, entries, true)
  last.setUint16(10, entries, true)
  return Buffer.concat([archive.subarray(0, end), ...copies, ending])
}

/** Letters that do not compress to next to nothing. */
const noise = (length: number) => {
  let text = ""
  for (let place = 0; text.length < length; place++)
    text += createHash("sha256").update(String(place)).digest("hex")
  return text
}

// oxlint-disable-next-line typescript/no-explicit-any -- each is measured by itself
const faults: ReadonlyArray<readonly [name: string, size: number, Subject<any>]> = [
  [
    "a glob that nearly matches everywhere",
    2_000,
    subject({
      make: (size) => "https://a.example/" + "a".repeat(size),
      run: ({ Glob }, url) =>
        Glob.makeUrlFilter({ includePatterns: [`*${"a".repeat(500)}b${"a".repeat(500)}?b1*`] })(url)
    })
  ],
  [
    "many globs that nearly match everywhere, and many addresses",
    30,
    subject({
      make: (size) => ({
        urls: Array.from({ length: size }, (_, place) => `https://a.example/${place}${"a".repeat(1_900)}`),
        excludePatterns: Array.from({ length: size }, (_, place) => `*${"a".repeat(900)}?b${place}*`)
      }),
      run: ({ Glob }, { excludePatterns, urls }) => {
        const verdict = Glob.makeUrlFilter({ excludePatterns })
        return urls.filter((url) => verdict(url).included).length
      }
    })
  ],
  [
    "many pages of one title that are not quite alike",
    100,
    subject({
      make: (size) =>
        Array.from({ length: size }, (_, place) => ({
          uri: `https://a.example/${place}`,
          digest: String(place),
          fingerprint: `${"0".repeat(16)}:${((BigInt(place) * 0x9e3779b97f4a7c15n) & 0xffffffffffffffffn).toString(16).padStart(16, "0")}`
        })),
      run: ({ DuplicateDetector }, prints) => {
        const detector = DuplicateDetector.makeDuplicateDetector()
        return prints.filter((print) => detector.check(print) === undefined).length
      }
    })
  ],
  [
    "a robots.txt of many patterns and a long address",
    2_500,
    subject({
      make: (size) => ({ text: "user-agent: *\n" + "disallow: /*b\n".repeat(size), path: "a".repeat(size) }),
      run: ({ Robots }, { path, text }) =>
        Robots.mayFetch(Robots.parseRobots(text), "SpokeBot", `https://a.example/${path}`)
    })
  ],
  [
    "a cell of a Word table with many paragraphs",
    400,
    document((size) =>
      word(`<w:tbl><w:tr><w:tc>${"<w:p><w:t>word</w:t></w:p>".repeat(size)}</w:tc></w:tr></w:tbl>`)
    )
  ],
  [
    "a workbook that shows one sheet many times",
    50,
    document((size) => {
      const files = xlsxFiles([
        { name: "A", rows: `<row>${"<c><v></v></c>".repeat(size * 4)}</row><row><c><v>1</v></c></row>` }
      ])
      const sheets = Array.from({ length: size }, (_, place) => `<sheet name="s${place}" r:id="rId1"/>`).join(
        ""
      )
      return pack({ ...files, "xl/workbook.xml": `<workbook><sheets>${sheets}</sheets></workbook>` })
    })
  ],
  [
    "a workbook with many sheets and as many relationships",
    400,
    document((size) => {
      const files = xlsxFiles([{ name: "A", rows: "<row><c><v>1</v></c></row>" }])
      const sheets = '<sheet name="A" r:id="rId1"/>' + '<sheet name="B" r:id="none"/>'.repeat(size)
      const others = '<Relationship Id="other" Type="a/b" Target="c"/>'.repeat(size)
      return pack({
        ...files,
        "xl/workbook.xml": `<workbook><sheets>${sheets}</sheets></workbook>`,
        "xl/_rels/workbook.xml.rels": (files["xl/_rels/workbook.xml.rels"] ?? "").replace("</", `${others}</`)
      })
    })
  ],
  [
    "a workbook whose cell and text end many times",
    400,
    document((size) => {
      const files = xlsxFiles(
        [{ name: "A", rows: `<row><c><v>${"1".repeat(size * 5)}</v>${"</c>".repeat(size)}` }],
        { strings: `<si><t>${"word ".repeat(size)}</t>${"</si>".repeat(size)}` }
      )
      return pack(files)
    })
  ],
  [
    "a workbook whose row ends many times",
    400,
    document((size) =>
      pack(xlsxFiles([{ name: "A", rows: `<row>${"<c><v>1</v></c>".repeat(size)}${"</row>".repeat(size)}` }]))
    )
  ],
  [
    "a workbook whose cells all name one long blank text",
    100,
    document((size) =>
      pack(
        xlsxFiles(
          [
            {
              name: "A",
              rows: `<row><c><v>1</v></c></row><row>${'<c t="s"><v>0</v></c>'.repeat(size)}</row>`
            }
          ],
          {
            strings: `<si><t>${" ".repeat(size * 20)}</t></si>`
          }
        )
      )
    )
  ],
  [
    "a presentation that shows one slide many times",
    50,
    document((size) => {
      const files = pptxFiles([{ file: 1, title: "One", shapes: "<p:pic></p:pic>".repeat(size * 4) }])
      const slides = Array.from({ length: size }, (_, place) => `<p:sldId id="${place}" r:id="rId1"/>`).join(
        ""
      )
      return pack({ ...files, "ppt/presentation.xml": `<p:presentation>${slides}</p:presentation>` })
    })
  ],
  [
    "an Office file whose parts overlap",
    100,
    document((size) => {
      const files = xlsxFiles([{ name: "A", rows: `<row><c><v>1</v></c></row>${noise(size * 200)}` }])
      return overlapping(pack(files), "xl/worksheets/sheet1.xml", size)
    })
  ],
  [
    "a ZIP of documents whose entries overlap",
    100,
    subject({
      make: (size) => overlapping(pack({ "a.txt": noise(size * 200) }), "a.txt", size),
      run: async ({ Effect, Zip }, archive) => {
        const reading = Effect.gen(function* () {
          for (const entry of yield* Zip.zipEntries(archive)) yield* Zip.unzipEntry(archive, entry, 1e9)
        })
        await Effect.runPromise(Effect.either(reading))
      }
    })
  ],
  [
    "a table of text with a long heading over many rows",
    300,
    document((size) => bytes(`${"a".repeat(size)},b\n${"1,2\n".repeat(size)}`), { fileName: "a.csv" })
  ],
  [
    "a web page with many elements beside each other",
    1_000,
    document((size) =>
      bytes(`<html><body><p>Some words.</p>${"<div>Some words of it.</div>".repeat(size)}</body></html>`)
    )
  ],
  [
    "a paragraph of a PDF with many lines",
    300,
    subject({
      make: (size) => [
        Array.from({ length: size }, (_, place) => ({
          text: "a line of words",
          height: 10,
          baseline: 1e6 - place * 12
        }))
      ],
      run: ({ PdfLayout }, pages) => PdfLayout.layOut(pages)
    })
  ],
  [
    "a WhatsApp delivery with many messages and many contacts",
    100,
    subject({
      make: (size) => ({
        entry: [
          {
            changes: [
              {
                value: {
                  metadata: { phone_number_id: "1" },
                  contacts: Array.from({ length: size }, (_, place) => ({
                    wa_id: String(1_000 + place),
                    profile: { name: "Somebody" }
                  })),
                  messages: Array.from({ length: size }, (_, place) => ({
                    id: `m${place}`,
                    from: String(1_000 + size - place),
                    type: "text",
                    text: { body: "Hi" }
                  }))
                }
              }
            ]
          }
        ]
      }),
      run: ({ DateTime, Whatsapp }, body) => Whatsapp.normalize(body, DateTime.unsafeMake(0))
    })
  ],
  [
    "a WhatsApp delivery with many changes of a business with a long id",
    100,
    subject({
      make: (size) => ({
        entry: [
          {
            id: "1".repeat(size * 20),
            changes: Array.from({ length: size }, () => ({ value: { user_id_update: [{}] } }))
          }
        ]
      }),
      run: ({ DateTime, Whatsapp }, body) => Whatsapp.normalize(body, DateTime.unsafeMake(0))
    })
  ],
  [
    "a WhatsApp delivery whose messages share a long contact",
    100,
    subject({
      make: (size) => ({
        entry: [
          {
            changes: [
              {
                value: {
                  metadata: { phone_number_id: "1" },
                  contacts: [{ wa_id: "1000", note: "x".repeat(size * 20) }],
                  messages: Array.from({ length: size }, (_, place) => ({
                    id: `m${place}`,
                    from: "1000",
                    type: "text",
                    text: { body: "Hi" }
                  }))
                }
              }
            ]
          }
        ]
      }),
      run: ({ DateTime, Whatsapp }, body) => Whatsapp.normalize(body, DateTime.unsafeMake(0))
    })
  ],
  [
    "many values to be hidden, and a text that names them",
    100,
    subject({
      make: (size) => ({
        values: Array.from({ length: size }, (_, place) => `secret-${place}`),
        text: "secret-x ".repeat(size)
      }),
      run: ({ Scrub }, { text, values }) => new Scrub.Scrubber(values).text(text)
    })
  ],
  [
    "a long value to be hidden, and a reply that begins it over and over",
    200,
    subject({
      make: (size) => ({ value: `${"a".repeat(size)}b`, text: "a".repeat(size * 2) }),
      run: ({ Scrub }, { text, value }) => new Scrub.Scrubber([value]).text(text)
    })
  ],
  [
    "a long value to be hidden, and a reply that begins it letter by letter",
    200,
    subject({
      make: (size) => ({ value: `${"ab".repeat(size)}c`, text: "ab".repeat(size) }),
      run: ({ Scrub }, { text, value }) => {
        const stream = new Scrub.Scrubber([value]).streaming()
        return Array.from(text, (letter) => stream.push(letter)).join("") + stream.flush()
      }
    })
  ],
  [
    "arguments of many items for a schema of many alternatives",
    60,
    subject({
      make: (size) => ({
        schema: {
          type: "object",
          properties: { list: { items: { anyOf: Array.from({ length: size }, () => ({ type: "number" })) } } }
        },
        input: { list: Array.from({ length: size }, () => "text") }
      }),
      run: ({ Arguments }, { input, schema }) => Arguments.validationProblems(schema, input)
    })
  ],
  [
    "arguments of many members for a tool that takes them in its address",
    200,
    subject({
      make: (size) =>
        Object.fromEntries(Array.from({ length: size }, (_, place) => [`name${place}`, "value"])),
      run: ({ Either, HttpRequest }, input) =>
        Either.map(
          HttpRequest.requestOf(
            { method: "GET", url: "https://a.example/", headers: {}, query: {} },
            {},
            input,
            []
          ),
          ({ url }) => url.length
        )
    })
  ],
  [
    "an excerpt with many openings of links",
    100,
    subject({
      make: (size) => "One [a](b c. ".repeat(size),
      run: ({ Extractive }, text) =>
        Extractive.extract("one", [{ index: 1, title: "T", text, score: 1, documentId: "doc_1", ordinal: 0 }])
    })
  ],
  [
    "a long question about many passages",
    50,
    subject({
      make: (size) => ({
        question: Array.from({ length: size }, (_, place) => `word${place}`).join(" "),
        passages: Array.from({ length: size }, (_, place) => ({
          index: place + 1,
          title: "T",
          text: `Some word${place} here.`,
          score: 1,
          documentId: `doc_${place}`,
          ordinal: 0
        }))
      }),
      run: ({ Extractive }, { passages, question }) => Extractive.extract(question, passages)
    })
  ]
]

describe("Twice the input takes at most twice the steps, and makes at most twice as much of it:", () => {
  for (const [name, size, made] of faults) {
    it(name, async () => {
      expect(await growthOf(m, made, size)).toSatisfy(isLinear)
    })
  }
})
