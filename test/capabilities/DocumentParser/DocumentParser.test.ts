import { expect, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as Fiber from "effect/Fiber"
import * as Schedule from "effect/Schedule"
import { strToU8, zipSync } from "fflate"
import { DocumentParser, type ParseRequest } from "../../../src/capabilities/DocumentParser.ts"
import { layerInline } from "../../../src/capabilities/DocumentParser/Inline.ts"
import { layerWorker } from "../../../src/capabilities/DocumentParser/Worker.ts"
import { withOwner } from "../../../src/concurrency/CurrentOwner.ts"
import { handbook, writePdf } from "../../fixtures/documents/PdfWriter.ts"

const script = new URL("../../../dist/workers/parse.js", import.meta.url)
const inline = layerInline({ maxPages: 100 })
const worker = layerWorker({ script, maxPages: 100, timeout: "30 seconds" })

const parse = (request: Omit<ParseRequest, "bytes"> & { readonly bytes: Uint8Array | string }) =>
  Effect.flatMap(DocumentParser, (parser) =>
    parser.parse({
      ...request,
      bytes: typeof request.bytes === "string" ? strToU8(request.bytes) : request.bytes
    })
  )
const failure = (request: Parameters<typeof parse>[0]) => Effect.flip(parse(request))

const page = (body: string, head = "<title>Opening hours</title>") =>
  `<!doctype html><html><head>${head}</head><body>${body}</body></html>`

const article = `
  <nav><a href="/">Home</a> <a href="/pricing#plans">Pricing</a></nav>
  <main><h1>Opening hours</h1>
  <p>The workshop opens at seven in the morning and closes at five in the afternoon on every working day.</p>
  <h2>Exceptions</h2>
  <table><tr><th>Day</th><th>Hours</th></tr><tr><td>Saturday</td><td>8 to 12</td></tr></table>
  <pre><code>GET /hours?day=saturday</code></pre>
  <p>Ask the <a href="desk.html">front desk</a> for anything else, by mail or in person.</p></main>
  <footer>All rights reserved by the footer</footer>`

const word = (body: string) =>
  zipSync({
    "[Content_Types].xml": strToU8(
      '<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>'
    ),
    "word/document.xml": strToU8(`<w:document><w:body>${body}</w:body></w:document>`)
  })
const paragraph = (text: string, style = "") =>
  `<w:p>${style === "" ? "" : `<w:pPr><w:pStyle w:val="${style}"/></w:pPr>`}<w:r><w:t>${text}</w:t></w:r></w:p>`

layer(inline)("DocumentParser, each format", (it) => {
  it.effect("A web page is its article as Markdown, with tables and code, without menu and footer", () =>
    Effect.gen(function* () {
      const { title, format, content, mediaType } = yield* parse({
        bytes: page(article),
        url: "https://a.example/in/x"
      })
      expect({ title, format, mediaType }).toEqual({
        title: "Opening hours",
        format: "markdown",
        mediaType: "text/html"
      })
      expect(content).toContain("| Saturday | 8 to 12 |")
      expect(content).toContain("```\nGET /hours?day=saturday\n```")
      expect(content).toContain("## Exceptions")
      expect(content).toContain("[front desk](https://a.example/in/desk.html)")
      expect(content).not.toMatch(/All rights reserved|Pricing/)
    })
  )

  it.effect("Short lists of a page are content: nested, in cells, and of terms", () =>
    Effect.gen(function* () {
      const { content } = yield* parse({
        bytes:
          page(`<main><h1>Return</h1><p>It is easy.</p><ul><li>Fill in the form<ul><li>in the account</li><li>or by mail</li></ul></li>
          <li>Pack it</li></ul><dl><dt>Period</dt><dd>30 days</dd></dl><p>You need</p><ul><li>the goods</li><li>the bill</li></ul>
          <p>次のもの：</p><ul><li>証明書</li><li>学生証</li></ul>
          <table><tr><th>Land</th><th>Fee</th></tr><tr><td>Austria</td><td><ul><li>5 euro</li><li>9 euro</li></ul></td></tr></table></main>`),
        url: "https://a.example/in/x"
      })
      for (const text of [
        "in the account",
        "or by mail",
        "30 days",
        "the goods",
        "the bill",
        "証明書",
        "9 euro"
      ])
        expect(content).toContain(text)
      expect(content).not.toMatch(/\uE000|^:$/mu)
    })
  )

  it.effect("Nested lists are indented by their depth", () =>
    Effect.gen(function* () {
      const list =
        "<ol><li>one<ul><li>a</li><li><p>b</p><ul><li>c</li><li>d</li></ul></li><li>e</li></ul></li><li>two</li></ol>"
      const { content } = yield* parse({
        bytes: page(`<main><h1>Steps</h1><p>What to do.</p>${list}</main>`),
        url: "https://a.example/in/x"
      })
      expect(content).toContain("1. one\n\t- a\n\t- b\n\t\t- c\n\t\t- d\n\t- e\n2. two")
    })
  )

  it.effect("A table with merged cells is a Markdown table, in which each row has all of its values", () =>
    Effect.gen(function* () {
      const { content } = yield* parse({
        bytes:
          page(`<main><h1>Fees</h1><p>What a parcel costs.</p><table><tr><th>Land</th><th>Kind</th><th>Fee</th></tr>
          <tr><td rowspan="2">Austria</td><td>Standard</td><td>5 euro</td></tr><tr><td>Express</td><td>9 euro</td></tr>
          <tr><td>Swiss</td><td colspan="2">none</td></tr><tr><td rowspan="x" colspan="-3">a</td><td>b</td><td>c</td></tr></table></main>`),
        url: "https://a.example/in/x"
      })
      expect(content.split("\n").filter((line) => line.startsWith("|"))).toEqual([
        "| Land | Kind | Fee |",
        "| --- | --- | --- |",
        "| Austria | Standard | 5 euro |",
        "| Austria | Express | 9 euro |",
        "| Swiss | none |  |",
        "| a | b | c |"
      ])
    })
  )

  it.effect("The pronunciation beside a word is no word of the sentence", () =>
    Effect.gen(function* () {
      const { content } = yield* parse({
        bytes: page("<main><p>送料は<ruby>無料<rp>(</rp><rt>むりょう</rt><rp>)</rp></ruby>です。</p></main>"),
        url: "https://a.example/in/x"
      })
      expect(content.replaceAll(" ", "")).toBe("送料は無料です。")
    })
  )

  it.effect("Addresses that would be too long once they are escaped are none", () =>
    Effect.gen(function* () {
      const long = "字".repeat(300)
      const head = `<title>T</title><link rel="canonical" href="/${long}">`
      const { canonicalUrl, links } = yield* parse({
        bytes: page(`${article}<a href="/${long}">long</a>`, head),
        url: "https://a.example/in/x"
      })
      expect(canonicalUrl).toBeUndefined()
      expect(links?.filter((link) => link.length > 2_048)).toEqual([])
      expect(links).toContain("https://a.example/pricing")
    })
  )

  it.effect(
    "A page's links are absolute, without fragments and each named once; its canonical address is resolved",
    () =>
      Effect.gen(function* () {
        const head = '<title>T</title><link rel="canonical" href="/canonical#x">'
        const extra =
          '<a href="/pricing">again</a><a href="mailto:x@a.example">mail</a><a href="javascript:0">js</a>'
        const { canonicalUrl, links } = yield* parse({
          bytes: page(article + extra, head),
          url: "https://a.example/in/x"
        })
        expect(canonicalUrl).toBe("https://a.example/canonical")
        expect(links).toEqual([
          "https://a.example/",
          "https://a.example/pricing",
          "https://a.example/in/desk.html"
        ])
      })
  )

  it.effect("A page in an old character set is read by what it declares", () =>
    Effect.gen(function* () {
      const text = page("<main><p>Caf\u00e9 na\u00efve, for everyone who likes words.</p></main>")
      const bytes = new Uint8Array(Buffer.from(text, "latin1"))
      const { content } = yield* parse({ bytes, contentType: "text/html; charset=iso-8859-1" })
      expect(content).toContain("Caf\u00e9 na\u00efve")
    })
  )

  it.effect("Markdown keeps its text; front matter or the first heading names it", () =>
    Effect.gen(function* () {
      const text = "# Setup\n\nRun it.\n\n```sh\n# no heading\n```\n"
      const plain = yield* parse({ bytes: text, fileName: "x.md" })
      expect(plain).toMatchObject({ title: "Setup", format: "markdown", content: text.trim() })
      const titled = yield* parse({ bytes: `---\ntitle: "Front"\n---\n${text}` })
      expect(titled).toMatchObject({ title: "Front", format: "markdown", content: text.trim() })
      const linked = yield* parse({
        bytes: "# <a id='x'></a>[The **Guide**](guide.md) {#guide}\n\nText.\n",
        fileName: "x.md"
      })
      expect(linked.title).toBe("The Guide")
    })
  )

  it.effect("The type is taken from the bytes, not from the name", () =>
    Effect.gen(function* () {
      const html = yield* parse({
        bytes: page(article),
        fileName: "report.pdf",
        contentType: "application/pdf"
      })
      expect(html.mediaType).toBe("text/html")
      const pdf = yield* parse({ bytes: handbook(2), fileName: "notes.txt", contentType: "text/plain" })
      expect(pdf.mediaType).toBe("application/pdf")
      const text = yield* parse({ bytes: "BM is how bitmaps begin, and this sentence.", fileName: "a.bmp" })
      expect(text.mediaType).toBe("text/plain")
    })
  )

  it.effect("Each record of a CSV file says what its values mean", () =>
    Effect.gen(function* () {
      const bytes = 'name;note\r\nAda;"likes ""engines"";\nand steam"\r\nBob;\r\n'
      const { content } = yield* parse({ bytes, fileName: "people.csv" })
      expect(content).toBe('name: Ada\nnote: likes "engines";\nand steam\n\nname: Bob')
    })
  )

  it.effect("Each value of a JSON file stands behind its path", () =>
    Effect.gen(function* () {
      const { content, title } = yield* parse({
        bytes: '[{"a":{"b":[1,true]}},{"c":"x"}]',
        fileName: "in/data.json"
      })
      expect({ content, title }).toEqual({ content: "a.b[0]: 1\na.b[1]: true\n\nc: x", title: "data" })
    })
  )

  it.effect("A Word document keeps headings, lists and tables", () =>
    Effect.gen(function* () {
      const cell = (text: string) => `<w:tc>${paragraph(text)}</w:tc>`
      const { title, content, mediaType } = yield* parse({
        bytes: word(
          paragraph("Terms &amp; more", "Heading1") +
            paragraph("Pay within 30 days.") +
            `<w:tbl><w:tr>${cell("Plan")}${cell("Price")}</w:tr><w:tr>${cell("Pro")}${cell("9 | 10")}</w:tr></w:tbl>` +
            '<w:p><w:pPr><w:numPr/></w:pPr><w:r><w:t xml:space="preserve">One </w:t><w:t>item</w:t></w:r></w:p>'
        )
      })
      expect(title).toBe("Terms & more")
      expect(mediaType).toContain("wordprocessingml")
      expect(content).toBe(
        "# Terms & more\n\nPay within 30 days.\n\n| Plan | Price |\n| --- | --- |\n| Pro | 9 \\| 10 |\n\n- One item"
      )
    })
  )

  it.effect("A PDF of 60 pages keeps every fact, its headings and where each stands", () =>
    Effect.gen(function* () {
      const { title, content } = yield* parse({ bytes: handbook(60) })
      expect(title).toBe("Meridian Handbook")
      for (let place = 0; place < 60; place++) {
        expect(content).toContain(
          `The valve of station ${place + 1} opens at ${1_000 + place * 7} millibar and is inspected twice a year`
        )
      }
      expect(content).toContain("# Chapter 3\n\n###### Page 21\n\nThe valve of station 21 ")
      expect(content).toContain("###### Page 22\n\nThe valve of station 22 ")
      expect(content).toContain("duty.\n\nEvery inspection")
      expect(content).not.toContain("Meridian Handbook")
    })
  )

  it.effect.prop(
    "Whatever the bytes are, the answer is text that can be stored or a known error",
    {
      text: FastCheck.string({ unit: "binary", maxLength: 200 }),
      head: FastCheck.constantFrom("", "<p>", "# a\n", "{", "%PDF-1.4", "PK\u0003\u0004", "\uFEFF")
    },
    ({ text, head }) =>
      Effect.gen(function* () {
        const result = yield* Effect.either(parse({ bytes: `${head}${text}\u0000\ud800` }))
        if (result._tag === "Left") return
        expect(result.right.content).not.toContain("\u0000")
        expect(result.right.content.isWellFormed() && result.right.title.isWellFormed()).toBe(true)
        expect(result.right.content.trim()).not.toBe("")
      }),
    { fastCheck: { numRuns: 60 } }
  )

  it.effect("NUL in a page is dropped and the page is read", () =>
    Effect.gen(function* () {
      const { content } = yield* parse({
        bytes: page("<main><p>Nul\u0000ls are dropped from these words.</p></main>")
      })
      expect(content).toBe("Nulls are dropped from these words.")
    })
  )
})

layer(inline)("DocumentParser, what cannot be read", (it) => {
  const cases: ReadonlyArray<readonly [string, () => Uint8Array | string, string, RegExp]> = [
    ["an empty file", () => "", "empty", /empty/],
    ["white space", () => " \n\t ", "empty", /no readable text/],
    ["a page that scripts fill", () => page("<div id=root></div>"), "empty", /scripts/],
    [
      "an encrypted PDF",
      () => writePdf([[{ text: "secret" }]], { encrypted: true }),
      "encrypted",
      /without a password/
    ],
    ["a PDF without text layer", () => writePdf([[], []]), "no_text_layer", /text recognition/],
    ["a PDF of too many pages", () => handbook(101), "too_many_pages", /101 pages.*100/],
    ["half a PDF header", () => "%PDF-1.7\n1 0 obj", "malformed", /damaged/],
    ["a ZIP", () => zipSync({ "a.txt": strToU8("a".repeat(50_000)) }), "unsupported_type", /archive/],
    [
      "an uncompressed ZIP",
      () => zipSync({ "a.txt": strToU8("a".repeat(50_000)) }, { level: 0 }),
      "unsupported_type",
      /archive/
    ],
    [
      "an image",
      () => new Uint8Array(Buffer.from("89504e470d0a1a0a0000000d49484452", "hex")),
      "unsupported_type",
      /image/
    ],
    [
      "a drawing",
      () =>
        '<?xml version="1.0"?>\n<!-- A plan -->\n<svg xmlns="http://www.w3.org/2000/svg"><a href="/x"><text>Hall</text></a></svg>',
      "unsupported_type",
      /svg.*PNG/
    ],
    [
      "unknown bytes",
      () => new Uint8Array(4_000).map((_, place) => (place * 7) % 16),
      "unsupported_type",
      /not a document/
    ]
  ]
  for (const [what, bytes, code, words] of cases) {
    it.effect(`The parser says in plain words why ${what} cannot be read`, () =>
      Effect.gen(function* () {
        const error = yield* failure({ bytes: bytes() })
        expect(error.code).toBe(code)
        expect(error.message).toMatch(words)
      })
    )
  }

  it.effect("A page, a Markdown file or other markup that begins with a drawing is read", () =>
    Effect.gen(function* () {
      const drawing = "<svg><path d='M0 0'/></svg>"
      const page = yield* parse({ bytes: `${drawing}<p>Words of the page.</p>`, fileName: "a.html" })
      expect(page.content).toContain("Words of the page.")
      const text = yield* parse({ bytes: `${drawing}\n\nWords of the text.`, fileName: "README.md" })
      expect(text.content).toContain("Words of the text.")
      const markup = yield* parse({ bytes: "<svgs><name>Words</name></svgs>" })
      expect(markup.content).toContain("Words")
    })
  )

  it.effect("A PDF that breaks off keeps what can be saved or fails as malformed", () =>
    Effect.gen(function* () {
      const whole = handbook(20)
      for (const share of [0.1, 0.5, 0.9, 0.99]) {
        const result = yield* Effect.either(parse({ bytes: whole.slice(0, whole.length * share) }))
        if (result._tag === "Left") expect(["malformed", "no_text_layer"]).toContain(result.left.code)
        else expect(result.right.content).toContain("station 1 ")
      }
    })
  )
})

layer(worker, { excludeTestServices: true })("DocumentParser in a worker", (it) => {
  const readable = Effect.gen(function* () {
    const { content } = yield* parse({ bytes: "still alive", fileName: "a.txt" })
    expect(content).toBe("still alive")
  })

  it.effect(
    "A PDF of 60 pages comes out as it does in the calling thread, and the caller keeps its bytes",
    () =>
      Effect.gen(function* () {
        const bytes = handbook(60)
        const length = bytes.length
        const threaded = yield* parse({ bytes })
        expect(bytes.length).toBe(length)
        expect(threaded).toEqual(yield* Effect.provide(parse({ bytes }), inline))
      })
  )

  it.effect("Twenty megabytes of nested elements fail their own parse and nothing else", () =>
    Effect.gen(function* () {
      const { code } = yield* failure({ bytes: page("<div>".repeat(4_000_000)) })
      expect(code).toBe("too_large")
      yield* readable
    })
  )

  it.effect("Deeply nested markup is read as its text", () =>
    Effect.gen(function* () {
      const { content } = yield* parse({ bytes: page(`<p>Above</p>${"<div>".repeat(5_000)}deep words`) })
      expect(content).toContain("deep words")
    })
  )

  it.effect("A page of a million links fails its own parse and nothing else", () =>
    Effect.gen(function* () {
      const { code } = yield* failure({ bytes: page("<a href='/x'>y</a>".repeat(1_000_000)) })
      expect(code).toBe("too_large")
      yield* readable
    })
  )

  it.effect("Text made to trip pattern matching is read in linear time", () =>
    Effect.gen(function* () {
      const megabyte = 1_000_000
      for (const text of ["#", "`", "a ", "-", "|", "[", "(", "\n", "> ", "---\n", "<!--", "&", '"', "{"]) {
        const result = yield* Effect.either(parse({ bytes: `x${text.repeat(megabyte / text.length)}` }))
        expect([text, result._tag]).toEqual([text, "Right"])
      }
      for (const name of ["a.csv", "a.md"])
        yield* parse({ bytes: `a,b\n${'"'.repeat(megabyte)}`, fileName: name })
    })
  )

  it.effect("JSON nested a million deep is no danger", () =>
    Effect.gen(function* () {
      yield* Effect.either(
        parse({ bytes: "[".repeat(1_000_000) + "]".repeat(1_000_000), fileName: "a.json" })
      )
      yield* readable
    })
  )

  it.effect("A Word document that unpacks to more than it may fails its own parse", () =>
    Effect.gen(function* () {
      const { code } = yield* failure({ bytes: word(`<w:t>${"a".repeat(101 * 1024 * 1024)}</w:t>`) })
      expect(code).toBe("too_large")
      yield* readable
    })
  )
})

const slow = () => page(`<main>${"<p>some <b>words</b> of <i>text</i></p>".repeat(40_000)}</main>`)

/** Stands for the parser's thread: does what the document says, and answers with the number of its thread. */
const puppet = new URL(
  `data:text/javascript,${encodeURIComponent(`
    import { parentPort, threadId } from "node:worker_threads"
    const answer = (title) => {
      if (title === "hang") for (;;) {}
      if (title === "die") process.exit(3)
      const document = { title, format: "text", content: String(threadId), mediaType: "text/plain" }
      return { _tag: "Parsed", document }
    }
    parentPort.on("message", ({ requests }) => {
      const orders = requests.map(({ bytes }) => Buffer.from(bytes).toString())
      if (orders.includes("babble")) return parentPort.postMessage("what?")
      parentPort.postMessage(orders.map(answer))
      if (orders.includes("die later")) setTimeout(() => { throw new Error("late") }, 50)
    })`)}`
)
const puppets = layerWorker({ script: puppet, timeout: "2 seconds", idleTimeout: "50 millis" })

layer(puppets, { excludeTestServices: true })("The parser's thread", (it) => {
  const thread = Effect.map(parse({ bytes: "answer" }), ({ content }) => content)

  it.effect("A thread serves one document after another", () =>
    Effect.gen(function* () {
      const used = yield* Effect.all(
        Array.from({ length: 20 }, () => thread),
        { concurrency: "unbounded" }
      )
      expect(new Set(used).size).toBe(1)
    })
  )

  it.effect("An unused thread ends, and the next document starts another", () =>
    Effect.gen(function* () {
      const first = yield* thread
      yield* Effect.repeat(thread, {
        until: (now) => now !== first,
        schedule: Schedule.spaced("200 millis")
      })
    })
  )

  for (const [order, code] of [
    ["hang", "timed_out"],
    ["die", "malformed"],
    ["babble", "malformed"]
  ] as const) {
    it.effect(
      `A thread told to ${order} fails that document with ${code}, and the next gets a fresh thread`,
      () =>
        Effect.gen(function* () {
          const first = yield* thread
          expect((yield* failure({ bytes: order })).code).toBe(code)
          expect(yield* thread).not.toBe(first)
        })
    )
  }

  it.effect("A thread that dies after its answer harms neither the process nor the next document", () =>
    Effect.gen(function* () {
      const { content: first } = yield* parse({ bytes: "die later" })
      yield* Effect.repeat(
        Effect.orElseSucceed(thread, () => first),
        {
          until: (now) => now !== first,
          schedule: Schedule.spaced("20 millis")
        }
      )
    })
  )

  it.effect("A document that is given up ends its thread at once", () =>
    Effect.gen(function* () {
      const first = yield* thread
      const given = yield* Effect.option(Effect.timeout(parse({ bytes: "hang" }), "50 millis"))
      expect(given._tag).toBe("None")
      expect(yield* thread).not.toBe(first)
    })
  )

  for (const [order, code] of [
    ["hang", "timed_out"],
    ["die", "malformed"],
    ["babble", "malformed"]
  ] as const) {
    it.effect(`Of documents that are sent together, one told to ${order} fails alone`, () =>
      Effect.gen(function* () {
        const orders = ["a", "b", order, "c", "d", "e"]
        const ends = yield* Effect.forEach(orders, (bytes) => Effect.either(parse({ bytes })), {
          concurrency: "unbounded"
        })
        expect(ends.map((end) => (end._tag === "Right" ? end.right.title : end.left.code))).toEqual(
          orders.map((each) => (each === order ? code : each))
        )
      })
    )
  }

  it.effect("Documents of one owner that hang keep nobody else's waiting", () =>
    Effect.gen(function* () {
      const read: Array<string> = []
      const told = (bytes: string) => Effect.sync(() => read.push(bytes))
      const hanging = yield* Effect.forEach(
        Array.from({ length: 4 }),
        () => Effect.zipRight(Effect.exit(parse({ bytes: "hang" })), told("hang")),
        { concurrency: "unbounded" }
      ).pipe(withOwner("slow"), Effect.fork)
      yield* Effect.sleep("50 millis")
      yield* Effect.forEach(["a", "b", "c"], (bytes) => Effect.zipRight(parse({ bytes }), told(bytes))).pipe(
        withOwner("other")
      )
      yield* Fiber.join(hanging)
      expect(read.slice(0, 3)).toEqual(["a", "b", "c"])
    })
  )

  it.effect("Documents that were sent with one that is given up are read all the same", () =>
    Effect.gen(function* () {
      const given = Effect.option(Effect.timeout(parse({ bytes: "hang" }), "50 millis"))
      const others = ["a", "b", "c", "d"].map((bytes) => parse({ bytes }))
      const titles = yield* Effect.all([Effect.all(others, { concurrency: "unbounded" }), given], {
        concurrency: "unbounded"
      })
      expect(titles[0].map(({ title }) => title)).toEqual(["a", "b", "c", "d"])
      expect(titles[1]._tag).toBe("None")
    })
  )
})

const small = layerWorker({ script, memoryMb: 48, buffersMb: 150, timeout: "60 seconds" })

layer(small, { excludeTestServices: true })("DocumentParser with little memory", (it) => {
  it.effect("A document that exhausts the heap fails with out_of_memory and the next one is read", () =>
    Effect.gen(function* () {
      const { code } = yield* failure({ bytes: slow() })
      expect(code).toBe("out_of_memory")
      expect((yield* parse({ bytes: "next" })).content).toBe("next")
    })
  )

  it.effect("A PDF whose page unpacks to hundreds of megabytes fails with out_of_memory", () =>
    Effect.gen(function* () {
      const content = Buffer.alloc(400 * 1024 * 1024, " ")
      const { code } = yield* failure({ bytes: writePdf([[]], { content }) })
      expect(code).toBe("out_of_memory")
      expect((yield* parse({ bytes: "next" })).content).toBe("next")
    })
  )
})
