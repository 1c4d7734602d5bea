import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { strToU8 } from "fflate"
import { DocumentParser, type ParseRequest } from "../../../src/capabilities/DocumentParser.ts"
import { layerInline } from "../../../src/capabilities/DocumentParser/Inline.ts"
import { chunkSteps } from "../../../src/search/Packer.ts"
import { epubFiles, pack, pptxFiles, textRow, xlsxFiles } from "../../fixtures/documents/OfficeWriter.ts"
import { yielded } from "../../Steps.ts"

const parser = layerInline({ maxPages: 50 })
const parse = (bytes: Uint8Array, hints: Omit<ParseRequest, "bytes"> = {}) =>
  Effect.flatMap(DocumentParser, (service) => service.parse({ bytes, ...hints })).pipe(Effect.provide(parser))

describe("XLSX", () => {
  it.effect("A workbook is its visible sheets, each a heading and a table", () =>
    Effect.gen(function* () {
      const strings =
        "<si><t>Station</t></si><si><r><t>Opened </t></r><r><t>on</t></r></si><si><t>Mer&amp;idian | 7</t><rPh><t>reading</t></rPh></si>"
      const styles =
        '<numFmts><numFmt numFmtId="165" formatCode="[$-409]d\\-mmm\\-yy"/></numFmts><cellStyleXfs><xf numFmtId="9"/></cellStyleXfs><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="165"/><xf numFmtId="10"/><xf numFmtId="20"/><xf numFmtId="22"/></cellXfs>'
      const rows = `<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>1</v></c><c r="C1" t="inlineStr"><is><t>Share</t></is></c><c r="D1" t="str"><v>At</v></c><c r="E1" t="str"><v>Seen</v></c><c r="G1" t="str"><v>Open</v></c></row>
        <row r="9"><c r="A9" t="s"><v>2</v></c><c r="B9" s="1"><v>45351</v></c><c r="C9" s="3"><v>0.125</v></c><c r="D9" s="4"><v>0.354166666666667</v></c><c r="E9" s="5"><f>NOW()</f><v>45351.75</v></c><c r="G9" t="b"><v>1</v></c></row>
        <row r="10"><c r="A10"><v>0.30000000000000004</v></c><c r="B10" s="2"><v>45352</v></c><c r="C10" t="e"><v>#N/A</v></c></row>`
      const sheets = [
        { name: "Stations &amp; more", rows },
        { name: "Secret", state: "hidden", rows: textRow(1, ["Hidden words"]) },
        { name: "Empty", rows: "" }
      ]
      const found = yield* parse(pack(xlsxFiles(sheets, { strings, styles })), { fileName: "stations.dat" })
      expect(found).toEqual({
        title: "stations",
        format: "markdown",
        mediaType: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        content: `## Stations & more

| Station | Opened on | Share | At | Seen | Open |
| --- | --- | --- | --- | --- | --- |
| Mer&idian \\| 7 | 2024-02-29 | 12.5% | 08:30 | 2024-02-29 18:00 | TRUE |
| 0.3 | 2024-03-01 | #N/A |  |  |  |`
      })
    })
  )

  it.effect("Days of a workbook that counts from 1904 are the right ones", () =>
    Effect.gen(function* () {
      const rows = '<row><c t="str"><v>Day</v></c></row><row><c s="0"><v>43889</v></c></row>'
      const styles = '<cellXfs><xf numFmtId="14"/></cellXfs>'
      const { content } = yield* parse(pack(xlsxFiles([{ name: "A", rows }], { styles, date1904: true })))
      expect(content).toContain("| 2024-02-29 |")
    })
  )

  it.effect("Every chunk of a long sheet repeats the header row", () =>
    Effect.gen(function* () {
      const body = Array.from({ length: 300 }, (_, place) =>
        textRow(place + 2, [`Station ${place}`, `Line ${place % 7}`, "Opens at seven in the morning"])
      )
      const rows = [textRow(1, ["Name", "Line", "Hours"]), ...body].join("")
      const { content, format, title } = yield* parse(pack(xlsxFiles([{ name: "Stations", rows }])))
      const chunks = yielded(chunkSteps({ content, format, title }))
      expect(chunks.length).toBeGreaterThan(10)
      for (const chunk of chunks) {
        expect(chunk.heading).toBe("Stations")
        expect(chunk.content.startsWith("| Name | Line | Hours |\n| --- | --- | --- |\n| Station")).toBe(true)
      }
      expect(chunks.map((chunk) => chunk.content.split("\n").length - 2).reduce((a, b) => a + b)).toBe(300)
    })
  )

  it.effect("Rows of a sheet wider than a chunk say what each value means", () =>
    Effect.gen(function* () {
      const names = Array.from({ length: 80 }, (_, place) => `Measurement ${place}`)
      const rows =
        textRow(1, names) +
        textRow(
          2,
          names.map((_, place) => `${place * 2} mm`)
        )
      const { content } = yield* parse(pack(xlsxFiles([{ name: "Wide", rows }])))
      expect(content).toContain("Measurement 40: 80 mm\nMeasurement 41: 82 mm")
    })
  )
})

describe("PPTX", () => {
  it.effect("A presentation is its visible slides in the order shown, with titles, tables and notes", () =>
    Effect.gen(function* () {
      const table =
        "<p:graphicFrame><a:graphic><a:graphicData><a:tbl><a:tr><a:tc><a:txBody><a:p><a:r><a:t>Day</a:t></a:r></a:p></a:txBody></a:tc><a:tc><a:txBody><a:p><a:r><a:t>Hours</a:t></a:r></a:p></a:txBody></a:tc></a:tr><a:tr><a:tc><a:txBody><a:p><a:r><a:t>Saturday</a:t></a:r></a:p></a:txBody></a:tc><a:tc><a:txBody><a:p><a:r><a:t>8 to 12</a:t></a:r></a:p></a:txBody></a:tc></a:tr></a:tbl></a:graphicData></a:graphic></p:graphicFrame>"
      const doubled =
        "<mc:AlternateContent><mc:Choice><p:sp><p:txBody><a:p><a:r><a:t>Said once</a:t></a:r></a:p></p:txBody></p:sp></mc:Choice><mc:Fallback><p:sp><p:txBody><a:p><a:r><a:t>Said once</a:t></a:r></a:p></p:txBody></p:sp></mc:Fallback></mc:AlternateContent>"
      const bytes = pack(
        pptxFiles([
          {
            file: 12,
            title: "Meridian",
            body: ["Founded 1912", "Closed &lt; 1950"],
            notes: "Tell them of the bridge."
          },
          { file: 3, title: "Hidden words", hidden: true },
          { file: 2, title: "Hours", shapes: table + doubled }
        ])
      )
      const { title, content, mediaType } = yield* parse(bytes)
      expect({ title, mediaType }).toEqual({
        title: "Meridian",
        mediaType: "application/vnd.openxmlformats-officedocument.presentationml.presentation"
      })
      expect(content).toBe(`## Meridian

- Founded 1912
- Closed < 1950

Notes: Tell them of the bridge.

## Hours

| Day | Hours |
| --- | --- |
| Saturday | 8 to 12 |

Said once`)
    })
  )

  it.effect("A presentation of more slides than are read fails and says how many", () =>
    Effect.gen(function* () {
      const slides = Array.from({ length: 51 }, (_, file) => ({ file, title: `Slide ${file}` }))
      const error = yield* Effect.flip(parse(pack(pptxFiles(slides))))
      expect(error).toMatchObject({ code: "too_many_pages" })
      expect(error.message).toContain("51 slides")
    })
  )
})

describe("EPUB", () => {
  const prose = (topic: string) =>
    `<h1>${topic}</h1><p>This chapter tells of ${topic} at length, in words that a reader would find in a book.</p>`

  it.effect("A book is its chapters in the order of reading", () =>
    Effect.gen(function* () {
      const files = epubFiles("The Meridian Book", [
        { file: "c2.xhtml", title: "Bridges", body: prose("bridges") },
        { file: "c%201.xhtml", title: "Tunnels", body: prose("tunnels") }
      ])
      files["OEBPS/c 1.xhtml"] = files["OEBPS/c%201.xhtml"] ?? ""
      const { title, content, mediaType } = yield* parse(pack(files))
      expect({ title, mediaType }).toEqual({ title: "The Meridian Book", mediaType: "application/epub+zip" })
      expect(content.indexOf("tells of bridges")).toBeGreaterThan(-1)
      expect(content.indexOf("tells of tunnels")).toBeGreaterThan(content.indexOf("tells of bridges"))
      expect(content).not.toContain("table of contents")
      expect(content).toMatch(/^#+ Bridges/i)
    })
  )

  it.effect("A book with copy protection fails as encrypted", () =>
    Effect.gen(function* () {
      const files = epubFiles("Locked", [{ file: "c1.xhtml", title: "A", body: "garbage" }])
      files["META-INF/encryption.xml"] =
        '<encryption><enc:EncryptedData><enc:CipherData><enc:CipherReference URI="OEBPS/c1.xhtml"/></enc:CipherData></enc:EncryptedData></encryption>'
      expect(yield* Effect.flip(parse(pack(files)))).toMatchObject({ code: "encrypted" })
    })
  )
})

describe("Character sets", () => {
  const bytesOf = (...bytes: ReadonlyArray<number>) => Uint8Array.from(bytes)
  const repeat = (bytes: Uint8Array, times: number) =>
    Uint8Array.from({ length: bytes.length * times }, (_, place) => bytes[place % bytes.length] ?? 0)
  const utf16 = (text: string, big: boolean, mark: boolean) => {
    const bytes = Buffer.from((mark ? "\ufeff" : "") + text, "utf16le")
    return new Uint8Array(big ? bytes.swap16() : bytes)
  }

  const cases: ReadonlyArray<readonly [string, Uint8Array, string, string?]> = [
    ["UTF-8", strToU8("Öffnungszeiten von früh bis spät"), "Öffnungszeiten"],
    ["UTF-16LE with a mark", utf16("Öffnungszeiten früh", false, true), "Öffnungszeiten"],
    ["UTF-16BE with a mark", utf16("Öffnungszeiten früh", true, true), "Öffnungszeiten"],
    ["UTF-16LE without a mark", utf16("Opening hours früh", false, false), "Opening hours früh"],
    ["UTF-16BE without a mark", utf16("Opening hours früh", true, false), "Opening hours früh"],
    [
      "Windows-1252",
      new Uint8Array(
        Buffer.from("The caf\xe9 \x93Br\xfccke\x94 opens at seven in the morning, as always.", "latin1")
      ),
      "café “Brücke”"
    ],
    [
      "Shift_JIS",
      // こんにちは。駅は七時に開きます。
      repeat(
        bytesOf(
          0x82,
          0xb1,
          0x82,
          0xf1,
          0x82,
          0xc9,
          0x82,
          0xbf,
          0x82,
          0xcd,
          0x81,
          0x42,
          0x89,
          0x77,
          0x82,
          0xcd,
          0x8e,
          0xb5,
          0x8e,
          0x9e,
          0x82,
          0xc9,
          0x8a,
          0x4a,
          0x82,
          0xab,
          0x82,
          0xdc,
          0x82,
          0xb7,
          0x81,
          0x42,
          0x0a
        ),
        6
      ),
      "駅は七時に開きます"
    ],
    [
      "GB18030",
      // 你好，车站七点开门。
      repeat(
        bytesOf(
          0xc4,
          0xe3,
          0xba,
          0xc3,
          0xa3,
          0xac,
          0xb3,
          0xb5,
          0xd5,
          0xbe,
          0xc6,
          0xdf,
          0xb5,
          0xe3,
          0xbf,
          0xaa,
          0xc3,
          0xc5,
          0xa1,
          0xa3,
          0x0a
        ),
        8
      ),
      "车站七点开门"
    ],
    [
      "EUC-KR",
      // 안녕하세요. 역은 일곱 시에 엽니다.
      repeat(
        bytesOf(
          0xbe,
          0xc8,
          0xb3,
          0xe7,
          0xc7,
          0xcf,
          0xbc,
          0xbc,
          0xbf,
          0xe4,
          0x2e,
          0x20,
          0xbf,
          0xaa,
          0xc0,
          0xba,
          0x20,
          0xc0,
          0xcf,
          0xb0,
          0xf6,
          0x20,
          0xbd,
          0xc3,
          0xbf,
          0xa1,
          0x20,
          0xbf,
          0xb1,
          0xb4,
          0xcf,
          0xb4,
          0xd9,
          0x2e,
          0x0a
        ),
        6
      ),
      "역은 일곱 시에"
    ],
    [
      "KOI8-R",
      // Привет, станция открывается в семь часов утра.
      repeat(
        bytesOf(
          0xf0,
          0xd2,
          0xc9,
          0xd7,
          0xc5,
          0xd4,
          0x2c,
          0x20,
          0xd3,
          0xd4,
          0xc1,
          0xce,
          0xc3,
          0xc9,
          0xd1,
          0x20,
          0xcf,
          0xd4,
          0xcb,
          0xd2,
          0xd9,
          0xd7,
          0xc1,
          0xc5,
          0xd4,
          0xd3,
          0xd1,
          0x20,
          0xd7,
          0x20,
          0xd3,
          0xc5,
          0xcd,
          0xd8,
          0x20,
          0xde,
          0xc1,
          0xd3,
          0xcf,
          0xd7,
          0x20,
          0xd5,
          0xd4,
          0xd2,
          0xc1,
          0x2e,
          0x0a
        ),
        4
      ),
      "станция открывается"
    ]
  ]
  for (const [name, bytes, expected] of cases) {
    it.effect(`Text in ${name} is read as what it says, undeclared`, () =>
      Effect.gen(function* () {
        const { content } = yield* parse(bytes, { fileName: "note.txt" })
        expect(content).toContain(expected)
      })
    )
  }
})
