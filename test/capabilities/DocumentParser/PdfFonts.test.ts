/** Fonts of East Asian PDFs, whose CMaps are not in the file. */
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { parsePdf } from "../../../src/capabilities/DocumentParser/Pdf.ts"

/** A page with the codes, in hexadecimal digits, each a line. */
const page = (cMap: string, collection: string, lines: ReadonlyArray<string>): Uint8Array => {
  const text = lines.map((codes, line) => `1 0 0 1 72 ${700 - 14 * line} Tm <${codes}> Tj`).join(" ")
  const content = `BT /F1 12 Tf ${text} ET BT /F2 12 Tf 72 100 Td (Page one) Tj ET`
  const objects = [
    "<< /Type /Catalog /Pages 2 0 R >>",
    "<< /Type /Pages /Count 1 /Kids [3 0 R] >>",
    "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 5 0 R /F2 8 0 R >> >> /Contents 4 0 R >>",
    `<< /Length ${content.length} >>\nstream\n${content}\nendstream`,
    `<< /Type /Font /Subtype /Type0 /BaseFont /Song /Encoding /${cMap} /DescendantFonts [6 0 R] >>`,
    `<< /Type /Font /Subtype /CIDFontType0 /BaseFont /Song /CIDSystemInfo << /Registry (Adobe) /Ordering (${collection}) /Supplement 4 >> /FontDescriptor 7 0 R >>`,
    "<< /Type /FontDescriptor /FontName /Song /Flags 4 /FontBBox [0 0 1000 1000] /ItalicAngle 0 /Ascent 800 /Descent -200 /CapHeight 700 /StemV 80 >>",
    "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
  ]
  const body = objects.map((object, at) => `${at + 1} 0 obj\n${object}\nendobj\n`).join("")
  return Buffer.from(`%PDF-1.4\n${body}trailer\n<< /Root 1 0 R >>\n%%EOF\n`).subarray()
}

const wordsOf = (cMap: string, collection: string, lines: ReadonlyArray<string>) =>
  parsePdf(Uint8Array.from(page(cMap, collection, lines)), { maxPages: 5, maxCharacters: 10_000 }).pipe(
    Effect.map(({ content }) => content.replace("###### Page 1\n\n", ""))
  )

describe("A PDF that names a predefined CMap", () => {
  for (const [cMap, collection, codes, words] of [
    ["UniJIS-UCS2-H", "Japan1", "65E5672C8A9E00200041", "日本語 A"],
    ["UniJIS2004-UTF16-H", "Japan1", "65E5672C8A9E", "日本語"],
    ["90ms-RKSJ-H", "Japan1", "93FA967B8CEA4142B1", "日本語ABｱ"],
    ["90msp-RKSJ-V", "Japan1", "93FA967B8CEA", "日本語"],
    ["EUC-H", "Japan1", "C6FCCBDCB8EC41", "日本語A"],
    ["H", "Japan1", "467C4B5C386C", "日本語"],
    ["GBK-EUC-H", "GB1", "D6D0CEC441", "中文A"],
    ["UniGB-UCS2-H", "GB1", "4E2D6587", "中文"],
    ["ETen-B5-H", "CNS1", "A4A4A4E541", "中文A"],
    ["UniCNS-UTF16-H", "CNS1", "4E2D6587", "中文"],
    ["KSCms-UHC-H", "Korea1", "C7D1B1DB41", "한글A"],
    ["UniKS-UCS2-H", "Korea1", "D55CAE00", "한글"]
  ] as const)
    it.effect(`${cMap}: keeps the text`, () =>
      Effect.gen(function* () {
        expect(yield* wordsOf(cMap, collection, [codes])).toBe(`${words}\n\nPage one`)
      })
    )

  it.effect("Glyphs that only their font explains are left out, and no other characters stand for them", () =>
    Effect.gen(function* () {
      expect(yield* wordsOf("Identity-H", "Japan1", ["0E5C0E5D", "00220023"])).toBe("Page one")
    })
  )

  it.effect("An unknown CMap does not hide the text of other fonts", () =>
    Effect.gen(function* () {
      for (const name of ["Own-H", "constructor-H", "UniXX-UCS2-H", "Adobe-Japan1-UCS2"])
        expect(Either.getOrThrow(yield* Effect.either(wordsOf(name, "Japan1", ["0E5C"])))).toBe("Page one")
    })
  )
})
