/** Text that an earlier version of a parser lost, glued, doubled or altered. */
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { strToU8 } from "fflate"
import { DocumentParser, type ParseRequest } from "../../../src/capabilities/DocumentParser.ts"
import { layerInline } from "../../../src/capabilities/DocumentParser/Inline.ts"
import { layOut, type PdfPage } from "../../../src/capabilities/DocumentParser/PdfLayout.ts"
import { epubFiles, pack, pptxFiles, xlsxFiles } from "../../fixtures/documents/OfficeWriter.ts"

const parser = layerInline({ maxPages: 50 })
const parse = (source: Uint8Array | string, hints: Omit<ParseRequest, "bytes"> = {}) =>
  Effect.flatMap(DocumentParser, (service) =>
    service.parse({ bytes: typeof source === "string" ? strToU8(source) : source, ...hints })
  ).pipe(Effect.provide(parser))

describe("PDF", () => {
  const pagesOf = (lines: (number: number) => ReadonlyArray<string>): ReadonlyArray<PdfPage> =>
    Array.from({ length: 6 }, (_, place) =>
      lines(place + 1).map((text, line) => ({ text, height: 10, baseline: 700 - 20 * line }))
    )
  const blocksOf = (lines: (number: number) => ReadonlyArray<string>) =>
    layOut(pagesOf(lines)).content.split("\n\n")

  it("A first or last line with a number of its own on each page is text", () => {
    const blocks = blocksOf((number) => [
      `Invoice ${1001 + number * 7}`,
      "Customer A owes money",
      `Total ${number * number}0 EUR`
    ])
    expect(blocks).toContain("Invoice 1022")
    expect(blocks).toContain("Total 90 EUR")
  })

  const running: ReadonlyArray<readonly [string, (number: number) => string]> = [
    ["the same text", () => "Meridian 2024, edition 3"],
    ["the page's number", (number) => `${number}`],
    ["the page's number and the number of pages", (number) => `Page ${number} of 12`],
    ["the number of a page in the whole book", (number) => `Meridian 2024 - ${number + 118}`],
    ["the page's number, but for one page", (number) => `Page ${number === 4 ? 40 : number}`]
  ]
  for (const [what, line] of running) {
    it(`A line of ${what} is left out`, () => {
      const blocks = blocksOf((number) => [line(number), `Words of ${number * number} kinds.`, "Ended."])
      expect(blocks).not.toContain(line(3))
      expect(blocks).toContain("Words of 9 kinds.")
    })
  }

  const joined = (...lines: ReadonlyArray<string>) =>
    layOut([lines.map((text, line) => ({ text, height: 10, baseline: 700 - 12 * line }))]).content.split(
      "\n\n"
    )[1]

  it("A word that a line ends with a hyphen of any kind is whole", () => {
    expect(joined("The infor\u00ad", "mation of the uni\u2010", "versity is com-", "plete.")).toBe(
      "The information of the university is complete."
    )
  })

  it("Lines of scripts without spaces between words are joined without one", () => {
    expect(joined("本製品の保証期間は購入日から", "一年間です。詳しくは、販売店", "に尋ねてください。")).toBe(
      "本製品の保証期間は購入日から一年間です。詳しくは、販売店に尋ねてください。"
    )
    expect(joined("使用说明书由制造商提供，", "API 的说明在附录中。")).toBe(
      "使用说明书由制造商提供， API 的说明在附录中。"
    )
    // Short lines are items of their own.
    expect(joined("姓名：张三", "地址：北京市朝阳区建国路八十八号")).toBe(
      "姓名：张三 地址：北京市朝阳区建国路八十八号"
    )
  })

  it("A line whose number is another one than on most pages is text", () => {
    expect(blocksOf((number) => [`Page ${number === 4 ? 40 : number}`, "Words.", "More."])).toContain(
      "Page 40"
    )
  })
})

describe("Markdown", () => {
  it.effect("A rule at the start is no front matter", () =>
    Effect.gen(function* () {
      const { content, title } = yield* parse(
        "---\n\nImportant: closed on Mondays.\n\n# Opening hours\n\nTuesday 9-17\n\n---\n\nContact us.",
        { fileName: "a.md" }
      )
      expect(content).toMatch(/Important: closed on Mondays\.[\s\S]*Tuesday 9-17[\s\S]*Contact us\.$/)
      expect(title).toBe("Opening hours")
      const { content: below } = yield* parse("---\n# Opening hours\nTuesday 9-17\n---\nContact us.", {
        fileName: "a.md"
      })
      expect(below).toContain("Tuesday 9-17")
    })
  )

  for (const matter of ["title: Hours", "# made by a tool\ntitle: Hours", 'título: "x"\ntitle: Hours']) {
    it.effect(`Front matter is metadata: ${JSON.stringify(matter)}`, () =>
      Effect.gen(function* () {
        for (const end of ["---", "..."]) {
          const { content, title } = yield* parse(`---\n${matter}\n${end}\nContact us.`, { fileName: "a.md" })
          expect({ content, title }).toEqual({ content: "Contact us.", title: "Hours" })
        }
      })
    )
  }

  it.effect("Front matter of TOML is metadata", () =>
    Effect.gen(function* () {
      const text = '+++\ndraft = false\ntitle = "Hours"\n+++\n\nContact us.'
      expect(yield* parse(text, { fileName: "a.md" })).toMatchObject({
        title: "Hours",
        content: "Contact us."
      })
    })
  )

  it.effect("MDX is read as Markdown, however short it is", () =>
    Effect.gen(function* () {
      for (const text of ["Contact us.", "<p>Contact us.</p>"]) {
        const parsed = yield* parse(`---\ntitle: Hours\n---\n${text}`, { fileName: "a.mdx" })
        expect(parsed).toMatchObject({ title: "Hours", content: text, format: "markdown" })
        expect((yield* parse(text, { fileName: "a.mdx" })).content).toBe(text)
      }
    })
  )

  it.effect("Empty front matter is dropped", () =>
    Effect.gen(function* () {
      expect((yield* parse("---\n---\nContact us.", { fileName: "a.md" })).content).toBe("Contact us.")
    })
  )

  it.effect("A title keeps a # that is part of a name", () =>
    Effect.gen(function* () {
      expect((yield* parse("# Using F#\n\ntext", { fileName: "a.md" })).title).toBe("Using F#")
      expect((yield* parse("# Using F# ##\n\ntext", { fileName: "a.md" })).title).toBe("Using F#")
      expect((yield* parse("# Hours #\n\ntext", { fileName: "a.md" })).title).toBe("Hours")
    })
  )
})

describe("DOCX", () => {
  const word = (body: string, parts: Readonly<Record<string, string>> = {}) =>
    pack({
      ...parts,
      "[Content_Types].xml":
        '<Types><Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>',
      "word/document.xml": `<w:document><w:body>${body}</w:body></w:document>`
    })
  const run = (text: string) => `<w:r><w:t>${text}</w:t></w:r>`
  const paragraph = (inner: string, properties = "") =>
    `<w:p>${properties === "" ? "" : `<w:pPr>${properties}</w:pPr>`}${inner}</w:p>`
  const style = (name: string) => `<w:pStyle w:val="${name}"/>`
  const box = (body: string) =>
    `<w:r><mc:AlternateContent><mc:Choice><wps:txbx><w:txbxContent>${body}</w:txbxContent></wps:txbx></mc:Choice><mc:Fallback><w:pict><v:textbox><w:txbxContent>${body}</w:txbxContent></v:textbox></w:pict></mc:Fallback></mc:AlternateContent></w:r>`
  const contentOf = (body: string) => Effect.map(parse(word(body)), ({ content }) => content)

  it.effect("Headings are those of the document's styles, whatever the language of Word", () =>
    Effect.gen(function* () {
      const named = (id: string, name: string, more = "") =>
        `<w:style w:type="paragraph" w:styleId="${id}"><w:name w:val="${name}"/>${more}</w:style>`
      const basedOn = (id: string) => `<w:basedOn w:val="${id}"/>`
      const styles = `<w:styles>${[
        named("Kop1", "heading 1", basedOn("Standaard")),
        named("2", "heading 2"),
        named("Hoofdstuk", "Hoofdstuk", basedOn("Kop1")),
        named("Rond", "Rond", basedOn("Rond")),
        named("Heading3", "Klein gedrukt")
      ].join("")}</w:styles>`
      const document = word(
        ["Kop1", "2", "Hoofdstuk", "Rond", "Heading3", "Heading4"]
          .map((id) => paragraph(run(id), style(id)))
          .join(""),
        {
          "word/_rels/document.xml.rels":
            '<Relationships><Relationship Id="a" Type="x/styles" Target="styles2.xml"/></Relationships>',
          "word/styles2.xml": styles
        }
      )
      const { content, title } = yield* parse(document)
      expect(title).toBe("Kop1")
      expect(content.split("\n\n")).toEqual([
        "# Kop1",
        "## 2",
        "# Hoofdstuk",
        "Rond",
        "Heading3",
        "#### Heading4"
      ])
    })
  )

  it.effect("The text of a box is read once, apart from the paragraph that holds it", () =>
    Effect.gen(function* () {
      const inside = paragraph(run("Boxed words"), style("Heading2")) + paragraph(run("and more"))
      const content = yield* contentOf(
        paragraph(run("Opening ") + box(inside) + run("hours"), style("Heading1")) +
          paragraph(run("At seven."))
      )
      expect(content).toBe("## Boxed words\n\nand more\n\n# Opening hours\n\nAt seven.")
    })
  )

  it.effect("Boxes in boxes and in tables leave the cells in order", () =>
    Effect.gen(function* () {
      const inner = box(paragraph(run("deep")))
      const cell = (text: string) => `<w:tc>${text}</w:tc>`
      const row = (...cells: ReadonlyArray<string>) => `<w:tr>${cells.map(cell).join("")}</w:tr>`
      const table = `<w:tbl>${row(paragraph(run("Day")), paragraph(run("Hours")))}${row(
        paragraph(run("Sat") + box(paragraph(run("note") + inner)) + run("urday")),
        paragraph(run("8 to 12"))
      )}</w:tbl>`
      expect(yield* contentOf(table)).toBe("| Day | Hours |\n| --- | --- |\n| deep note Saturday | 8 to 12 |")
    })
  )

  it.effect("Moved text stands only where it was moved to", () =>
    Effect.gen(function* () {
      const content = yield* contentOf(
        paragraph(`<w:moveFrom w:id="1">${run("Moved.")}</w:moveFrom>`) +
          paragraph(run("Between.")) +
          paragraph(`<w:moveTo w:id="2">${run("Moved.")}</w:moveTo>`)
      )
      expect(content).toBe("Between.\n\nMoved.")
    })
  )

  it.effect("A paragraph that is taken out of its style's list is no item", () =>
    Effect.gen(function* () {
      const numbering = (id: number) => `<w:numPr><w:ilvl w:val="0"/><w:numId w:val="${id}"/></w:numPr>`
      const content = yield* contentOf(
        paragraph(run("Plain"), numbering(0)) +
          paragraph(run("Item"), numbering(3)) +
          paragraph(run("Title"), style("Heading1") + numbering(0))
      )
      expect(content).toBe("Plain\n\n- Item\n\n# Title")
    })
  )
})

describe("XLSX", () => {
  it.effect("A duration is one, not a time of a day", () =>
    Effect.gen(function* () {
      const styles =
        '<numFmts><numFmt numFmtId="165" formatCode="[h]:mm"/><numFmt numFmtId="166" formatCode="[mm]:ss"/><numFmt numFmtId="167" formatCode="[$-407][hh]:mm:ss;@"/><numFmt numFmtId="168" formatCode="[s]"/></numFmts><cellXfs><xf numFmtId="165"/><xf numFmtId="46"/><xf numFmtId="166"/><xf numFmtId="167"/><xf numFmtId="168"/><xf numFmtId="20"/></cellXfs>'
      const cells = [
        [0, 1.6667],
        [1, 1.5],
        [2, 0.0625],
        [3, 0.25],
        [4, 0.001],
        [0, -0.5],
        [5, 0.25]
      ]
      const rows = `<row>${cells.map(() => '<c t="str"><v>x</v></c>').join("")}</row><row>${cells
        .map(([format, value]) => `<c s="${format}"><v>${value}</v></c>`)
        .join("")}</row>`
      const { content } = yield* parse(pack(xlsxFiles([{ name: "A", rows }], { styles })))
      expect(content).toContain("| 40:00 | 36:00:00 | 1:30:00 | 6:00:00 | 0:01:26 | -12:00 | 06:00 |")
    })
  )

  it.effect("Whole numbers stay as they are written, and the first days of 1900 are the right ones", () =>
    Effect.gen(function* () {
      const value = (text: string, style = 0) => `<c s="${style}"><v>${text}</v></c>`
      const rows = `<row>${value("123456789012345678")}${value("0.30000000000000004")}${value("1", 1)}${value("59", 1)}${value("61", 1)}</row>`
      const { content } = yield* parse(
        pack(xlsxFiles([{ name: "A", rows }], { styles: '<cellXfs><xf/><xf numFmtId="14"/></cellXfs>' }))
      )
      expect(content).toContain("| 123456789012345678 | 0.3 | 1900-01-01 | 1900-02-28 | 1900-03-01 |")
    })
  )

  it.effect("Each row of a merged cell has its text", () =>
    Effect.gen(function* () {
      const cell = (reference: string, text: string) =>
        `<c r="${reference}" t="inlineStr"><is><t>${text}</t></is></c>`
      const rows = `<row r="1">${cell("A1", "Land")}${cell("B1", "Kind")}</row><row r="2">${cell("A2", "Austria")}${cell("B2", "Standard")}</row>
        <row r="3">${cell("B3", "Express")}</row><row r="4"><c r="A4"/>${cell("B4", "Night")}</row><row r="5">${cell("B5", "None")}</row>`
      const sheet = `<?xml version="1.0"?><worksheet><sheetData>${rows}</sheetData><mergeCells><mergeCell ref="A2:A4"/></mergeCells></worksheet>`
      const { content } = yield* parse(pack(xlsxFiles([{ name: "A", rows: sheet }])))
      expect(content.split("\n").slice(4)).toEqual([
        "| Austria | Standard |",
        "| Austria | Express |",
        "| Austria | Night |",
        "|  | None |"
      ])
    })
  )

  it.effect("A wide sheet of many rows is read", () =>
    Effect.gen(function* () {
      const header = Array.from({ length: 200 }, (_, at) => `<c t="str"><v>c${at}</v></c>`).join("")
      const rows = `<row>${header}</row>${"<row><c><v>7</v></c></row>".repeat(300_000)}`
      const { content } = yield* parse(pack(xlsxFiles([{ name: "A", rows }])))
      expect(content.split("\n\n").length).toBe(300_001)
    })
  )

  it.effect("Escaped characters of strings are the characters", () =>
    Effect.gen(function* () {
      const strings = "<si><t>One_x000D_\nline</t></si><si><t>a_x005F_x000D_b _x00e9_</t></si>"
      const rows =
        '<row><c t="s"><v>0</v></c><c t="s"><v>1</v></c></row><row><c t="inlineStr"><is><t>in_x000A_line</t></is></c><c t="str"><v>_x0041__x0042_</v></c></row>'
      const { content } = yield* parse(pack(xlsxFiles([{ name: "A", rows }], { strings })))
      expect(content).toContain("| One line | a_x000D_b é |")
      expect(content).toContain("| in line | AB |")
    })
  )
})

describe("PPTX", () => {
  it.effect("Each row of a merged cell has its text", () =>
    Effect.gen(function* () {
      const cell = (text: string, more = "") =>
        `<a:tc${more}><a:txBody><a:p><a:r><a:t>${text}</a:t></a:r></a:p></a:txBody></a:tc>`
      const shapes = `<p:graphicFrame><a:tbl><a:tr>${cell("Land")}${cell("Kind")}</a:tr><a:tr>${cell("Austria", ' rowSpan="2"')}${cell("Standard")}</a:tr><a:tr>${cell("", ' vMerge="1"')}${cell("Express")}</a:tr></a:tbl></p:graphicFrame>`
      const { content } = yield* parse(pack(pptxFiles([{ file: 1, title: "Fees", shapes }])))
      expect(content).toContain("| Austria | Standard |\n| Austria | Express |")
    })
  )

  it.effect("The paragraphs of a title are words of their own", () =>
    Effect.gen(function* () {
      const shapes =
        '<p:sp><p:nvSpPr><p:nvPr><p:ph type="ctrTitle"/></p:nvPr></p:nvSpPr><p:txBody><a:p><a:r><a:t>Quarterly</a:t></a:r></a:p><a:p><a:r><a:t>report</a:t></a:r></a:p></p:txBody></p:sp>'
      const { content, title } = yield* parse(pack(pptxFiles([{ file: 1, shapes, body: ["Sales grew."] }])))
      expect([title, content]).toEqual(["Quarterly report", "## Quarterly report\n\nSales grew."])
    })
  )
})

describe("Text", () => {
  it.effect("Its encoding is found also if the first 64 KiB are ASCII", () =>
    Effect.gen(function* () {
      const word = "\xcf\xf0\xe8\xe2\xe5\xf2, \xfd\xf2\xee \xf2\xe5\xea\xf1\xf2. "
      const { content } = yield* parse(Buffer.from("plain line\n".repeat(7_000) + word.repeat(20), "latin1"))
      expect(content).toMatch(/Привет, это текст\.$/)
    })
  )
})

describe("CSV", () => {
  it.effect("Marks within quoted names of columns do not separate columns", () =>
    Effect.gen(function* () {
      const { content } = yield* parse('"Price, with tax, in EUR";Name\n12,50;Lamp', { fileName: "a.csv" })
      expect(content).toBe("Price, with tax, in EUR: 12,50\nName: Lamp")
    })
  )

  it.effect("A quoted name of a column may have several lines", () =>
    Effect.gen(function* () {
      const { content } = yield* parse('"Price\n(net, EUR)";"Name"\r\n"12,50";"Lamp"', { fileName: "a.csv" })
      expect(content).toBe("Price\n(net, EUR): 12,50\nName: Lamp")
    })
  )

  it.effect("Tabs separate the values of a file that is declared so, whatever its names contain", () =>
    Effect.gen(function* () {
      const text = "Name, first, last\tAge\nAda, L\t3\n"
      for (const hints of [{ fileName: "a.tsv" }, { contentType: "text/tab-separated-values" }])
        expect((yield* parse(text, hints)).content).toBe("Name, first, last: Ada, L\nAge: 3")
    })
  )

  it.effect("Lines may end with a carriage return alone", () =>
    Effect.gen(function* () {
      const { content } = yield* parse("Name,Age\rAda,3\rBob,4\r", { fileName: "a.csv" })
      expect(content).toBe("Name: Ada\nAge: 3\n\nName: Bob\nAge: 4")
    })
  )

  it.effect("Excel's line with the delimiter names it and is no header", () =>
    Effect.gen(function* () {
      for (const [first, separator] of [
        ["sep=;", ";"],
        ["SEP=,", ","],
        ['"sep=^"', "^"],
        ["sep=\t", "\t"]
      ] as const) {
        const rows = [
          ["Name", "Price, net"],
          ["Apple", "3;4"]
        ].map((row) => row.map((value) => `"${value}"`).join(separator))
        const { content } = yield* parse([first, ...rows].join("\r\n"), { fileName: "a.csv" })
        expect(content).toBe("Name: Apple\nPrice, net: 3;4")
      }
    })
  )
})

describe("JSON", () => {
  it.effect("Numbers stay as they are written", () =>
    Effect.gen(function* () {
      const { content } = yield* parse(
        String.raw`{"id":1234567890123456789,"v": [1.10,-0,1e3 , 2E-400],"quoted \" 1.50":"a \\","12":"say \"1.10\" ok"}`,
        { fileName: "a.json" }
      )
      expect(content.split(/\n+/).toSorted()).toEqual(
        [
          "id: 1234567890123456789",
          "v[0]: 1.10",
          "v[1]: -0",
          "v[2]: 1e3",
          "v[3]: 2E-400",
          'quoted " 1.50: a \\',
          '12: say "1.10" ok'
        ].toSorted()
      )
      expect((yield* parse("1.50", { fileName: "a.json" })).content).toBe("1.50")
    })
  )

  it.effect("What only looks like JSON is text", () =>
    Effect.gen(function* () {
      for (const text of [
        "[1.2.3] is a version",
        "[01]",
        "{1: 2}",
        "[1 2]",
        "[- 1]",
        "[1.]",
        "[.5]",
        '["a" 1]'
      ]) {
        expect(yield* parse(text)).toMatchObject({ content: text, mediaType: "text/plain" })
      }
    })
  )
})

describe("HTML", () => {
  const sentence =
    "It has enough words to be seen as the content of a page, and not as a part of its menu or footer. "
  const mainOf = (body: string) =>
    parse(
      `<!doctype html><html><head><title>T</title></head><body><main>${body}<p>${sentence}</p></main></body></html>`,
      {
        url: "https://a.example/p"
      }
    ).pipe(Effect.map(({ content }) => content))

  it.effect("Dates are text: in sentences, alone after the heading, in cells and in items", () =>
    Effect.gen(function* () {
      const content = yield* mainOf(
        `<h1>Fairs</h1><p>We are closed on 8 May 2024.</p><p>It begins on <time datetime="2024-05-09">9 May 2024</time> at noon.</p>
        <table><tr><th>When</th><th>What</th></tr><tr><td><time>10 May</time></td><td>Fair</td></tr></table>
        <ul><li><time>11 May</time> Market</li><li>12 May</li></ul><p>13 May 2024</p>`
      )
      for (const text of [
        "closed on 8 May",
        "on 9 May 2024 at noon",
        "| 10 May | Fair |",
        "11 May Market",
        "12 May",
        "13 May"
      ])
        expect(content).toContain(text)
    })
  )

  it.effect("The caption of a table stands before it", () =>
    Effect.gen(function* () {
      const table =
        "<table><caption>Fees of 2024</caption><tr><th>Land</th></tr><tr><td>Austria</td></tr></table>"
      expect(yield* mainOf(`<h1>Fees</h1>${table}`)).toContain(
        "Fees of 2024\n\n| Land |\n| --- |\n| Austria |"
      )
    })
  )

  it.effect("A small article does not stand for the whole page", () =>
    Effect.gen(function* () {
      const content = yield* mainOf(
        `<h1>Hours</h1><p>The desk opens at nine. ${sentence}</p><article><h2>News</h2><p>A new lift.</p></article>`
      )
      for (const text of ["opens at nine", "## News", "A new lift."]) expect(content).toContain(text)
    })
  )

  it.effect("XHTML is read in the encoding of its XML declaration", () =>
    Effect.gen(function* () {
      const html = `<html xmlns="http://www.w3.org/1999/xhtml"><body><p>\xcf\xf0\xe8\xe2\xe5\xf2</p></body></html>`
      const xml = `<?xml version="1.0" encoding='Windows-1251'?>\n${html}`
      expect((yield* parse(Buffer.from(xml, "latin1"))).content).toBe("Привет")
    })
  )

  const words = (topic: string) =>
    `<p>This paragraph tells of ${topic} at length, in words that a reader would find in a book.</p>`

  it.effect("Elements that XHTML closes in their own tag hide nothing", () =>
    Effect.gen(function* () {
      const body = `<h1>Bridges</h1>${words("bridges")}<script src="b.js"/><textarea rows="2" /><iframe
        src="x"/>${words("tunnels")}`
      const files = epubFiles("Book", [{ file: "c1.xhtml", title: "Bridges", body }])
      expect((yield* parse(pack(files))).content).toContain("tells of tunnels")
      const xhtml = `<?xml version="1.0"?><!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml"><head><title>Bridges</title></head><body><main>${body}</main></body></html>`
      const { content } = yield* parse(xhtml, { contentType: "application/xhtml+xml" })
      expect(content).toContain("tells of tunnels")
    })
  )

  it.effect("A fragment with an <html> in a comment is read", () =>
    Effect.gen(function* () {
      const { content } = yield* parse(`<div><!-- <html> -->${words("bridges")}</div>`, {
        contentType: "text/html"
      })
      expect(content).toContain("tells of bridges")
    })
  )
})
