/** Damaged pages of a PDF, and what stands on its pages beside their content. */
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { parsePdf } from "../../../src/capabilities/DocumentParser/Pdf.ts"
import { pdfOf, streamObject, writePdf } from "../../fixtures/documents/PdfWriter.ts"

const limits = { maxPages: 200, maxCharacters: 100_000 }

/** The objects of one page follow each other: the page, its content, its font and its resources. */
const first = 3
const numberOf = (page: number, object: "page" | "content" | "font" | "resources"): number =>
  first + (page - 1) * 4 + ["page", "content", "font", "resources"].indexOf(object)

interface PageParts {
  readonly text: string
  /** Further entries of the page. */
  readonly entries?: string
}

const objectsOf = (pages: ReadonlyArray<PageParts>, form = ""): ReadonlyArray<string> => [
  `<< /Type /Catalog /Pages 2 0 R ${form} >>`,
  `<< /Type /Pages /Count ${pages.length} /Kids [${pages.map((_, place) => `${numberOf(place + 1, "page")} 0 R`).join(" ")}] >>`,
  ...pages.flatMap(({ text, entries = "" }, place) => {
    const at = (object: "content" | "font" | "resources") => `${numberOf(place + 1, object)} 0 R`
    return [
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources ${at("resources")} /Contents ${at("content")} ${entries} >>`,
      streamObject("", `BT /F1 12 Tf 72 700 Td (${text}) Tj ET`),
      "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
      `<< /Font << /F1 ${at("font")} >> >>`
    ]
  })
]

/** In letters, because a line with the number of its page is a running head. */
const wordsOf = (page: number): string =>
  `Words ${String(page).replace(/\d/g, (digit) => "abcdefghij".charAt(Number(digit)))}.`
const numbered = (count: number) =>
  Array.from({ length: count }, (_, place) => ({ text: wordsOf(place + 1) }))

describe("A PDF with a page that cannot be read", () => {
  for (const object of ["content", "resources"] as const)
    it.effect(`Damaged ${object}: the other pages are read, and the page is named`, () =>
      Effect.gen(function* () {
        const bytes = pdfOf(objectsOf(numbered(5)), "", [numberOf(2, object)])
        const { content, incomplete } = yield* parsePdf(bytes, limits)
        for (const page of [1, 3, 4, 5]) expect(content).toContain(`###### Page ${page}\n\n${wordsOf(page)}`)
        expect(content).not.toContain("Page 2")
        expect(incomplete).toBe("The file is damaged. Pages that could not be read completely: 2.")
      })
    )

  it.effect("A damaged page object is named, with those behind it that cannot be found", () =>
    Effect.gen(function* () {
      const objects = objectsOf(numbered(5)).map((object, place) =>
        place + 1 === numberOf(4, "page") ? "(no page)" : object
      )
      const { content, incomplete } = yield* parsePdf(pdfOf(objects), limits)
      expect(content).toContain(wordsOf(3))
      expect(incomplete).toBe("The file is damaged. Pages that could not be read completely: 4 ff.")
    })
  )

  it.effect("Many damaged pages are named as ranges, in bounded length", () =>
    Effect.gen(function* () {
      const damaged = Array.from({ length: 200 }, (_, place) => place + 1).filter(
        (page) => (page > 1 && page < 6) || (page > 9 && page % 2 === 0)
      )
      const bytes = pdfOf(
        objectsOf(numbered(200)),
        "",
        damaged.map((page) => numberOf(page, "content"))
      )
      const { content, incomplete = "" } = yield* parsePdf(bytes, limits)
      expect(content).toContain(wordsOf(199))
      expect(incomplete).toMatch(/completely: 2-5, 10, 12, .* and more\.$/u)
      expect(incomplete.length).toBeLessThan(200)
    })
  )

  it.effect(
    "A file without any readable page fails as malformed, and an undamaged one has nothing to name",
    () =>
      Effect.gen(function* () {
        const bytes = pdfOf(
          objectsOf(numbered(3)),
          "",
          [1, 2, 3].map((page) => numberOf(page, "content"))
        )
        expect(yield* Effect.flip(parsePdf(bytes, limits))).toMatchObject({ code: "malformed" })
        expect(yield* parsePdf(writePdf([[{ text: "Words" }]]), limits)).not.toHaveProperty("incomplete")
      })
  )
})

/** A page with these annotations, which are widgets of a form where they have a field type. */
const pageWith = (text: string, annotations: ReadonlyArray<string>): Uint8Array => {
  const firstOf = first + 4
  const objects = objectsOf(
    [{ text, entries: `/Annots [${annotations.map((_, place) => `${firstOf + place} 0 R`).join(" ")}]` }],
    `/AcroForm << /Fields [${annotations.flatMap((one, place) => (one.includes("/FT") ? [`${firstOf + place} 0 R`] : [])).join(" ")}] >>`
  )
  return pdfOf([
    ...objects,
    ...annotations.map(
      (entries, place) =>
        `<< /Type /Annot /Rect [72 ${600 - 30 * place} 300 ${620 - 30 * place}] ${entries} >>`
    )
  ])
}
const widget = (name: string, entries: string) => `/Subtype /Widget /T (${name}) ${entries}`
const states = (on: string) => `/AP << /N << /${on} 99 0 R /Off 99 0 R >> >>`

const blocksOf = (text: string, annotations: ReadonlyArray<string>) =>
  Effect.map(parsePdf(pageWith(text, annotations), limits), ({ content }) => content.split("\n\n"))

describe("A PDF with a form", () => {
  it.effect("Values are read with the field's tooltip or name, from the top of the page to its bottom", () =>
    Effect.gen(function* () {
      const blocks = yield* blocksOf("Application", [
        widget("form[0].name[0]", "/FT /Tx /TU (Full name) /V (Ada Lovelace)"),
        widget("form[0].city[0]", "/FT /Tx /V (London\\rMarylebone)"),
        widget("country", "/FT /Ch /Ff 131072 /Opt [[(uk) (United Kingdom)] [(fr) (France)]] /V (uk)"),
        widget("languages", "/FT /Ch /Ff 2097152 /Opt [(French) (Latin) (Greek)] /V [(French) (Greek)]"),
        widget("Newsletter", `/FT /Btn /V /Yes /AS /Yes ${states("Yes")}`),
        widget("Payment", `/FT /Btn /Ff 32768 /V /Invoice /AS /Invoice ${states("Invoice")}`)
      ])
      expect(blocks).toEqual([
        "###### Page 1",
        "Application",
        "Full name: Ada Lovelace",
        "form.city: London Marylebone",
        "country: United Kingdom",
        "languages: French, Greek",
        "[x] Newsletter",
        "Payment: Invoice"
      ])
    })
  )

  it.effect("Passwords, hidden and empty fields, buttons and boxes that are off are not read", () =>
    Effect.gen(function* () {
      const blocks = yield* blocksOf("Application", [
        widget("Password", "/FT /Tx /Ff 8192 /V (geheim)"),
        widget("Multiline", "/FT /Tx /Ff 12288 /V (geheim)"),
        widget("Hidden", "/FT /Tx /F 2 /V (hidden)"),
        widget("Elsewhere", "/FT /Tx /F 32 /V (hidden)"),
        widget("Empty", "/FT /Tx /V ( )"),
        widget("Button", "/FT /Btn /Ff 65536 /V (push)"),
        widget("Terms", `/FT /Btn /V /Off /AS /Off ${states("Yes")}`),
        widget("Choice", `/FT /Btn /Ff 32768 /V /Other /AS /Off ${states("This")}`),
        "/Subtype /Text /F 2 /Contents (hidden)",
        "/Subtype /Link /Contents (a link)"
      ])
      expect(blocks).toEqual(["###### Page 1", "Application"])
    })
  )

  it.effect("A password that its field inherits from another field is not read", () =>
    Effect.gen(function* () {
      const at = first + 4
      const bytes = pdfOf([
        ...objectsOf(
          [{ text: "Sign in", entries: `/Annots [${at} 0 R]` }],
          `/AcroForm << /Fields [${at + 1} 0 R] >>`
        ),
        `<< /Type /Annot /Subtype /Widget /Rect [72 600 300 620] /Parent ${at + 1} 0 R >>`,
        `<< /FT /Tx /Ff 8192 /T (Login) /V (geheim) /Kids [${at} 0 R] >>`
      ])
      expect((yield* parsePdf(bytes, limits)).content).toBe("###### Page 1\n\nSign in")
    })
  )

  it.effect("Its values count as text, and notes alone do not", () =>
    Effect.gen(function* () {
      expect(yield* blocksOf("", [widget("Name", "/FT /Tx /V (Ada)")])).toEqual([
        "###### Page 1",
        "Name: Ada"
      ])
      const scanned = pageWith("", ["/Subtype /Text /Contents (Sign here)"])
      expect(yield* Effect.flip(parsePdf(scanned, limits))).toMatchObject({ code: "no_text_layer" })
    })
  )
})

describe("A PDF with annotations", () => {
  it.effect("Their texts are read: notes, text on the page, and comments to marked text", () =>
    Effect.gen(function* () {
      const quad = "/QuadPoints [72 710 200 710 72 698 200 698]"
      const blocks = yield* blocksOf("The draft", [
        "/Subtype /Text /Contents (Ask the\\rnotary)",
        "/Subtype /FreeText /DA (/Helv 12 Tf) /Contents (# Void since May)",
        `/Subtype /Highlight ${quad} /Contents (Wrong sum)`,
        `/Subtype /Highlight ${quad}`,
        "/Subtype /Text /Contents (Accepted by Ada) /StateModel (Review) /State (Accepted)"
      ])
      expect(blocks).toEqual([
        "###### Page 1",
        "The draft",
        "Note: Wrong sum",
        "Note: Ask the notary",
        "\\# Void since May"
      ])
    })
  )

  it.effect("A damaged annotation hides neither the text of the page nor the others", () =>
    Effect.gen(function* () {
      const blocks = yield* blocksOf("The draft", [
        "/Subtype 7",
        "/Subtype /Text /Contents 99 0 R",
        "/Subtype /Text /Contents (Kept)"
      ])
      expect(blocks).toEqual(["###### Page 1", "The draft", "Note: Kept"])
    })
  )

  it.effect("Annotations of a page that are damaged hide none of other pages, and the page is named", () =>
    Effect.gen(function* () {
      const note = "/Annots [<< /Type /Annot /Subtype /Text /Rect [0 0 9 9] /Contents (Kept) >>]"
      const pages = [
        { text: wordsOf(1), entries: note },
        { text: wordsOf(2), entries: "/Annots 15 0 R" },
        { text: wordsOf(3), entries: note }
      ]
      const { content, incomplete } = yield* parsePdf(pdfOf([...objectsOf(pages), "[]"], "", [15]), limits)
      expect(content.split("\n\n").filter((block) => !block.startsWith("#"))).toEqual([
        wordsOf(1),
        "Note: Kept",
        wordsOf(2),
        wordsOf(3),
        "Note: Kept"
      ])
      expect(incomplete).toMatch(/completely: 2\.$/u)
    })
  )
})

/** A page of lines of one or two parts, each drawn before the next line. */
const drawn = (rows: ReadonlyArray<readonly [left: string, right: string]>, distance = 14): Uint8Array => {
  const at = (x: number, y: number, text: string) =>
    text === "" ? "" : `BT /F1 10 Tf ${x} ${y} Td (${text}) Tj ET`
  const content = rows
    .map(
      ([left, right], row) => `${at(72, 700 - distance * row, left)} ${at(320, 700 - distance * row, right)}`
    )
    .join("\n")
  return writePdf([[]], { content: Buffer.from(content, "latin1") })
}

const story = (name: string): ReadonlyArray<string> => [
  `${name} one begins with a sentence that fills it`,
  `and goes on for a while in ${name} with words`,
  `until the third line of ${name} is full as well`,
  `where another sentence of ${name} is written in`,
  `the same manner with the words of ${name} here`,
  `and almost to the margin of ${name} once more`,
  `so that the seventh line of ${name} is the last`
]
const paired = (left: ReadonlyArray<string>, right: ReadonlyArray<string>) =>
  left.map((text, row) => [text, right[row] ?? ""] as const)

describe("A PDF whose lines are drawn across two columns", () => {
  const contentOf = (bytes: Uint8Array) =>
    Effect.map(parsePdf(bytes, limits), ({ content }) => content.replace("###### Page 1\n\n", ""))

  it.effect("Each column is read from its top to its end, and the lines around them stay around them", () =>
    Effect.gen(function* () {
      const [left, right] = [story("alpha"), story("omega")]
      const full =
        "A line above both columns goes from the left margin of the page as far as the right margin of it"
      const content = yield* contentOf(
        drawn([[full, ""], ...paired(left, right), ["", ""], [full.replace("above", "below"), ""]])
      )
      const places = [full, ...left, ...right, full.replace("above", "below")].map((line) =>
        content.indexOf(line)
      )
      expect(places).not.toContain(-1)
      expect(places).toEqual(places.toSorted((a, b) => a - b))
      expect(content).toContain(left.join(" "))
      expect(content).toContain(right.join(" "))
    })
  )

  it.effect("A line that only one of the columns has belongs to that column", () =>
    Effect.gen(function* () {
      const [left, right] = [story("alpha"), story("omega")]
      const content = yield* contentOf(
        drawn(paired([...left, "and alpha has an end of its own that is longer"], right))
      )
      expect(content).toContain(`${left.at(-1)} and alpha has an end`)
    })
  )

  it.effect("Tables are read by their rows", () =>
    Effect.gen(function* () {
      const prices = Array.from(
        { length: 9 },
        (_, row) => [`Product with the number ${row}`, `${row * 10} EUR`] as const
      )
      expect(yield* contentOf(drawn(prices))).toContain("Product with the number 3 30 EUR")
      const short = story("alpha").slice(0, 5)
      expect(yield* contentOf(drawn(paired(short, story("omega").slice(0, 5))))).toContain(
        `${short[0]} omega one`
      )
      const cells = paired(story("alpha"), story("omega"))
      expect(yield* contentOf(drawn(cells, 30))).toContain(`${cells[0]?.[0]} omega one`)
      const uneven = paired(story("alpha"), [
        "yes",
        "no, or only with the consent of both of them",
        "no",
        "yes",
        "no",
        "no",
        "no"
      ])
      expect(yield* contentOf(drawn(uneven))).toContain(`${uneven[0]?.[0]} yes`)
    })
  )
})
