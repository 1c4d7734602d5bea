/** What a Word document says beside its plain paragraphs. */
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { parseDocx } from "../../../src/capabilities/DocumentParser/Docx.ts"
import { pack } from "../../fixtures/documents/OfficeWriter.ts"

const documentOf = (body: string) => `<w:document><w:body>${body}</w:body></w:document>`
const contentOf = (body: string, parts: Readonly<Record<string, string>> = {}) =>
  Effect.map(parseDocx(pack({ "word/document.xml": documentOf(body), ...parts })), ({ content }) => content)
const run = (text: string, properties = "") =>
  `<w:r>${properties === "" ? "" : `<w:rPr>${properties}</w:rPr>`}<w:t>${text}</w:t></w:r>`
const paragraph = (inner: string) => `<w:p>${inner}</w:p>`
const cell = (text: string, properties = "") =>
  `<w:tc><w:tcPr>${properties}</w:tcPr><w:p>${text === "" ? "" : run(text)}</w:p></w:tc>`
const table = (...rows: ReadonlyArray<ReadonlyArray<string>>) =>
  `<w:tbl>${rows.map((cells) => `<w:tr>${cells.join("")}</w:tr>`).join("")}</w:tbl>`
const reference = (kind: string, id: number) => `<w:r><w:${kind}Reference w:id="${id}"/></w:r>`
const notes = (kind: string, texts: ReadonlyArray<string>) =>
  `<w:${kind}s>${[`<w:${kind} w:type="separator" w:id="-1"><w:p><w:r><w:separator/></w:r></w:p></w:${kind}>`]
    .concat(texts.map((text, id) => `<w:${kind} w:id="${id}">${paragraph(run(text))}</w:${kind}>`))
    .join("")}</w:${kind}s>`

describe("A Word document", () => {
  it.effect("Notes follow the paragraph that refers to them, each once", () =>
    Effect.gen(function* () {
      const content = yield* contentOf(
        paragraph(
          run("The fee is 5 euro") + reference("footnote", 1) + run(" a day.") + reference("endnote", 0)
        ) +
          paragraph(run("Again.") + reference("footnote", 1)) +
          table(
            [cell("Day"), cell("Hours")],
            [cell("Sat"), `<w:tc>${paragraph(run("8") + reference("footnote", 0))}</w:tc>`]
          ),
        {
          "word/footnotes.xml": notes("footnote", ["Not in May.", "Free on Sundays."]),
          "word/endnotes.xml": notes("endnote", ["As of 2024."])
        }
      )
      expect(content).toBe(
        "The fee is 5 euro a day.\n\nFree on Sundays.\n\nAs of 2024.\n\nAgain.\n\n" +
          "| Day | Hours |\n| --- | --- |\n| Sat | 8 Not in May. |"
      )
    })
  )

  it.effect("Each value of a table with merged cells stands in its column, and each row has its label", () =>
    Effect.gen(function* () {
      const restart = '<w:vMerge w:val="restart"/>'
      const content = yield* contentOf(
        table(
          [cell("Land"), cell("Kind"), cell("Fee")],
          [cell("Austria", restart), cell("Standard"), cell("5 euro")],
          [cell("", "<w:vMerge/>"), cell("Express"), cell("9 euro")],
          [cell("", '<w:vMerge w:val="continue"/>'), cell("Night"), cell("")],
          [cell("Swiss", '<w:gridSpan w:val="2"/>'), cell("7 euro")]
        )
      )
      expect(content.split("\n").slice(2)).toEqual([
        "| Austria | Standard | 5 euro |",
        "| Austria | Express | 9 euro |",
        "| Austria | Night |  |",
        "| Swiss |  | 7 euro |"
      ])
    })
  )

  it.effect("Cells that claim to be merged a million times add little", () =>
    Effect.gen(function* () {
      const wide = cell("x", '<w:gridSpan w:val="1000000000"/>')
      const content = yield* contentOf(table(...Array.from({ length: 2_000 }, () => [wide])))
      expect(content.length).toBeLessThan(100_000)
    })
  )

  it.effect("Hidden text is left out, and so is the pronunciation beside a word", () =>
    Effect.gen(function* () {
      const ruby = `<w:r><w:ruby><w:rt>${run("かんじ")}</w:rt><w:rubyBase>${run("漢字")}</w:rubyBase></w:ruby></w:r>`
      const content = yield* contentOf(
        paragraph("<w:pPr><w:rPr><w:vanish/></w:rPr></w:pPr>" + run("Shown.")) +
          paragraph(
            run("Draft only.", "<w:vanish/>") + run("Kept", '<w:vanish w:val="0"/>') + run(" words.")
          ) +
          paragraph(ruby + run("を読む"))
      )
      expect(content).toBe("Shown.\n\nKept words.\n\n漢字を読む")
    })
  )

  it.effect("An equation is text, whose fractions and powers can be told apart", () =>
    Effect.gen(function* () {
      const text = (words: string) => `<m:r><m:t>${words}</m:t></m:r>`
      const content = yield* contentOf(
        paragraph(
          run("So ") +
            `<m:oMath>${text("E=m")}<m:sSup><m:e>${text("c")}</m:e><m:sup>${text("2")}</m:sup></m:sSup>${text(" or ")}` +
            `<m:f><m:num>${text("a+b")}</m:num><m:den>${text("2")}</m:den></m:f></m:oMath>` +
            run(".")
        )
      )
      expect(content).toBe("So E=mc^2 or (a+b)/(2).")
    })
  )

  it.effect("XML that Word does not write itself is read: other prefixes, CDATA, comments, > in values", () =>
    Effect.gen(function* () {
      const body =
        '<x:p><x:pPr><x:pStyle x:val="Heading1"/></x:pPr><x:r><x:t><![CDATA[Fees < 5]]></x:t></x:r></x:p>' +
        '<x:p><x:r><x:drawing descr="a > <b"/><!-- <x:t>no</x:t> --><x:t>Paid.</x:t></x:r></x:p>'
      const { content, title } = yield* parseDocx(
        pack({ "word/document.xml": `<x:document><x:body>${body}</x:body></x:document>` })
      )
      expect({ content, title }).toEqual({ content: "# Fees < 5\n\nPaid.", title: "Fees < 5" })
    })
  )
})
