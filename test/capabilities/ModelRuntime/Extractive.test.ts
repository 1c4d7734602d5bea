import * as Prompt from "@effect/ai/Prompt"
import { expect, it } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as Stream from "effect/Stream"
import { describe } from "vitest"
import { ModelRuntime, type Passage } from "../../../src/capabilities/ModelRuntime.ts"
import { extractiveNoticesFor } from "../../../src/domain/chat/Notices.ts"
import { extract, layerExtractive } from "../../../src/capabilities/ModelRuntime/extractive/Extractive.ts"

const passage = (
  index: number,
  title: string,
  text: string,
  score = 0.5,
  { documentId = `doc_${index}`, ordinal = 0 } = {}
): Passage => ({ index, title, text, score, documentId, ordinal })

const install = passage(
  1,
  "Guide > Install",
  "You need Node 20 or later. Clone the repository first.\n\n" +
    "Then install the packages and start the service:\n\n```bash\nnpm ci\nnpm start\n```\n\nIt listens on port 3000." +
    " Another one may be chosen.".repeat(40),
  0.7
)
const returns = passage(
  2,
  "Returns",
  "A refund takes five working days after the parcel is back\nat our warehouse. It is paid to the card that was used. " +
    "See e.g. the [account page](https://example.com/a). You can follow every step there.[3]\n\n" +
    "![stamp](https://example.com/stamp.png) Our shops open at nine."
)
const plans = passage(
  3,
  "Plans",
  "The plans are:\n\n- Free: 100 turns a month\n- Pro: 10,000 turns a month\n\n" +
    "| Plan | Price |\n|---|---|\n| Free | 0 euro |\n| Pro | 20 euro |"
)
const all = [install, returns, plans]

const notice =
  "_No language model is configured, so replies are extracts from the sources. Set OPENAI_API_KEY for written answers._"

/** The extract without the line that says it is one. */
const answer = (question: string, passages: ReadonlyArray<Passage> = all): string => {
  const text = extract(question, passages)
  expect(text.endsWith(`\n\n${notice}`)).toBe(true)
  return text.slice(0, -notice.length).trim()
}

describe("Extractive", () => {
  it("answers with the passage that answers, whole, under its heading and followed by its mark", () => {
    expect(answer("How long does a refund take?")).toBe(
      "**Returns**\n\nA refund takes five working days after the parcel is back at our warehouse. It is paid to the card " +
        "that was used. See e.g. the [account page](https://example.com/a). You can follow every step there.\n\n" +
        "stamp Our shops open at nine. [2]"
    )
  })

  it("runs from the start of the section through its code: the step itself, then the command, each cited", () => {
    expect(answer("How do I install it?")).toBe(
      "**Guide › Install**\n\nYou need Node 20 or later. Clone the repository first.\n\n" +
        "Then install the packages and start the service: [1]\n\n```bash\nnpm ci\nnpm start\n```\n\n[1]"
    )
  })

  it("begins with the section that the question names, before one that only quotes the question in its code", () => {
    const quoting = passage(
      1,
      "Guide > Ask",
      "Beside a running server:\n\n```sh\nspoke chat 'How do I start it?'\n```",
      0.68
    )
    const starting = passage(
      2,
      "Guide > Start a server",
      "In a clone of the project:\n\n```sh\nnpm ci && npm run serve\n```",
      0.67
    )
    expect(answer("How do I start the server?", [quoting, starting])).toMatch(
      /^\*\*Guide › Start a server\*\*\n\nIn a clone of the project: \[2\]\n\n```sh\nnpm ci && npm run serve\n```\n\n\[2\]/
    )
  })

  it("begins with what the search found first, where another section only has more of the question's words", () => {
    const first = passage(1, "Cookies", "Cookies of a request are read with getCookies.", 0.42)
    const other = passage(2, "Mocks", "The headers of an incoming request can be read from a mock.", 0.36)
    expect(answer("How can I read the cookies of an incoming request's headers?", [first, other])).toMatch(
      /^\*\*Cookies\*\*\n\nCookies of a request are read with getCookies\. \[1\]/
    )
  })

  it("keeps tags in code spans, shows indented code as code, and leaves out where links within the source lead", () => {
    const text =
      'Put `<script src="widget.js">` on the page, see [Widget](widget.md#start) and [more](https://example.com/a):\n\n    npm start\n\n    npm stop'
    expect(answer("How do I put the script on my page?", [passage(1, "Widget", text)])).toBe(
      '**Widget**\n\nPut `<script src="widget.js">` on the page, see Widget and [more](https://example.com/a): [1]\n\n' +
        "```\nnpm start\n\nnpm stop\n```\n\n[1]"
    )
  })

  it("begins with the first chunk of a section, even when a later one was found before it", () => {
    const within = (ordinal: number) => ({ documentId: "doc_sources", ordinal })
    const passages = [
      passage(1, "Sources > Add a source", "A repeat of the request adds no second source.", 0.6, within(3)),
      passage(
        2,
        "Sources > Add a source",
        "Add a source with a request:\n\n```sh\ncurl /v1/sources\n```",
        0.55,
        within(1)
      )
    ]
    expect(answer("How do I add a source?", passages)).toMatch(
      /^\*\*Sources › Add a source\*\*\n\nAdd a source with a request: \[2\]\n\n```sh\ncurl \/v1\/sources\n```\n\n\[2\]/
    )
  })

  it("quotes the rows of a table that answer, under its header", () => {
    const text = answer("What is the price of Pro?")
    expect(text).toContain("| Plan | Price |\n|---|---|\n| Pro | 20 euro |\n\n[3]")
    expect(text).not.toContain("Free | 0 euro")
  })

  it("quotes a table without pipes at its sides as one", () => {
    const text = "The prices:\n\nPlan | Price\n--- | ---\nFree | 0 euro\nPro | 20 euro"
    expect(answer("What is the price of Pro?", [passage(1, "Plans", text)])).toBe(
      "**Plans**\n\nThe prices: [1]\n\n| Plan | Price |\n| --- | --- |\n| Pro | 20 euro |\n\n[1]"
    )
  })

  it("keeps a list with the sentence that announces it", () => {
    expect(answer("Which plans are there?")).toContain(
      "The plans are:\n\n- Free: 100 turns a month\n- Pro: 10,000 turns a month [3]"
    )
  })

  it("takes no marks, images, tags or heading links over from the sources", () => {
    const passages = [
      passage(
        1,
        "[Guide](guide.md) > Hours [#](#hours) > **Opening** {#opening}",
        '<a id="hours"></a>Our shops open at nine.[3]\n\n![stamp](https://example.com/stamp.png)'
      )
    ]
    expect(answer("When do the shops open?", passages)).toBe(
      "**Guide › Hours › Opening**\n\nOur shops open at nine. [1]"
    )
  })

  it("keeps nested lists nested, the fields of a record apart, and broken lines of a cell as words of their own", () => {
    const list =
      "Before you install:\n\n1. Turn it **off**.\n   - Both switches.\n   - The seal.\n2. Wait.\n\n"
    const tabs = "1. first\n\t- under install\n\t\t- below\n2. second"
    const indented = "- one install\n  - two\n  - three"
    const record = "product: Install kit\nprice: 20: or more\nstock: 5"
    const table = "| Install | Do |\n|---|---|\n| E02 | switch off,<br>call us<br/>now |"
    expect(
      answer("How do I install it?", [
        passage(1, "Install", [list, tabs, indented, record, table].join("\n\n"))
      ])
    ).toBe(
      "**Install**\n\nBefore you install:\n\n1. Turn it **off**.\n   - Both switches.\n   - The seal.\n2. Wait.\n\n" +
        "1. first\n    - under install\n        - below\n2. second\n\n" +
        // Whether its first line was nested cannot be told any more.
        "- one install\n- two\n- three\n\n" +
        "- product: Install kit\n- price: 20: or more\n- stock: 5 [1]\n\n" +
        "| Install | Do |\n|---|---|\n| E02 | switch off, call us now |\n\n[1]"
    )
  })

  it("joins the lines of a sentence that has a colon in each of them", () => {
    const text =
      "Install it with `npm i`: the package is small. By default\nit is `quiet`: nothing is printed."
    expect(answer("How do I install it?", [passage(1, "Install", text)])).toBe(
      "**Install**\n\nInstall it with `npm i`: the package is small. By default it is `quiet`: nothing is printed. [1]"
    )
  })

  it("joins lines of scripts without spaces without one, and shows the text of a footnote without its mark", () => {
    const text =
      "貸出期間の延長は\n1回のみ可能です。予約が入っている本は延長で\nきません。API\nもあります。\nSee it\nhere.\n本[^1]\n\n[^1]: 延長の注。"
    expect(answer("貸出期間の延長", [passage(1, "案内", text)])).toBe(
      "**案内**\n\n貸出期間の延長は1回のみ可能です。予約が入っている本は延長できません。APIもあります。See it here. 本\n\n延長の注。 [1]"
    )
  })

  it("shows links by reference as their text, without their addresses, and no badges", () => {
    const text =
      "[![Install][ci-img]][ci-url] [![Install](https://ci.example/a.svg)](https://ci.example/)\n\n" +
      "Install it with [`npm`][npm] as the [install guide][] says, see matrix[i][j] and [the notes][1].\n" +
      'Also <a name="x">#</a> by hand.\n\n' +
      '<a name="install" href="#install">#</a> install.<b>all</b>()\n\n' +
      "[npm]: https://npm.example/\n[1]: #notes\n[`x()`]:\n  https://x.example/\n[Note]: it is free."
    expect(answer("How do I install it?", [passage(1, "Install", text)])).toBe(
      "**Install**\n\nInstall it with `npm` as the install guide says, see matrix[i][j] and the notes. Also # by hand.\n\n" +
        "install.all()\n\n[Note]: it is free. [1]"
    )
  })

  it("says so when the sources hold nothing on the question", () => {
    const nothing = "I found nothing on that in the sources."
    const weak = all.map((found) => ({ ...found, score: 0.3 }))
    expect(answer("Who won the world cup in 1998?", weak)).toBe(nothing)
    expect(answer("Hello!", weak)).toBe(nothing)
    expect(answer("How long does a refund take?", [])).toBe(nothing)
  })

  it("says so in the language of the question", () => {
    expect(answer("Wie lange ist die Lieferzeit nach Norwegen?", [])).toBe(
      "Dazu habe ich in den Quellen nichts gefunden."
    )
    expect(answer("送料はいくらですか？", [])).toBe("これについて資料には何も見つかりませんでした。")
    const text = "Eine Rückgabe ist innerhalb von dreißig Tagen möglich."
    const weak = [{ ...passage(1, "Rückgabe", text), score: 0.2 }]
    expect(answer("Wie ist die Rückgabe innerhalb von dreißig Tagen möglich?", weak)).toMatch(
      /^Ich bin nicht sicher, dass die Quellen das beantworten\./
    )
  })

  it("says that passages come closest when the search was not sure, and asks for two words of the question", () => {
    const weak = all.map((found) => ({ ...found, score: 0.2 }))
    expect(answer("Is a refund paid to my card?", weak)).toMatch(
      /^I am not sure that the sources answer this\. These passages come closest:\n\n\*\*Returns\*\*/
    )
    expect(answer("Is there a refund for tickets?", weak)).toBe("I found nothing on that in the sources.")
  })

  it("asks for more than half of the question's words when the search found hardly anything", () => {
    const weak = [passage(1, "Delays", "The second delay ends after an hour.", 0.18)]
    expect(answer("When did the second world war end?", weak)).toBe("I found nothing on that in the sources.")
    expect(answer("When does the second delay end?", weak)).toContain("after an hour. [1]")
  })

  it("is content with one word of a question that is not English, which the search compares by its words alone", () => {
    const helmets = passage(1, "Mit Kindern", "Helme in allen Größen leihen wir ohne Aufpreis.", 0.15)
    const unsure =
      "Ich bin nicht sicher, dass die Quellen das beantworten. Diese Stellen kommen dem am nächsten:"
    expect(answer("Müssen wir für die Helme zahlen?", [helmets])).toBe(
      `${unsure}\n\n**Mit Kindern**\n\nHelme in allen Größen leihen wir ohne Aufpreis. [1]`
    )
    expect(answer("Was kostet eine Pizza?", [helmets])).toBe("Dazu habe ich in den Quellen nichts gefunden.")
    const short = passage(1, "Z dziećmi", "Kaski pożyczamy bez dopłaty.", 0.15)
    expect(answer("Czy za kask trzeba płacić?", [short])).toContain("Kaski pożyczamy bez dopłaty. [1]")
  })

  it("answers in other languages by the forms of their words", () => {
    const passages = [passage(1, "退款", "退款需要五个工作日。营业时间是九点到五点。", 0.2)]
    expect(answer("退款要多久？", passages)).toContain("退款需要五个工作日。营业时间是九点到五点。 [1]")
    const german = [passage(1, "Lieferzeiten", "Bestellungen verlassen das Lager nach drei Tagen.", 0.3)]
    expect(answer("Wie lange dauert die Lieferung?", german)).toContain("nach drei Tagen. [1]")
  })

  it("counts what is asked for in scripts without spaces, not how it is asked", () => {
    const weak = [passage(1, "時間", "土曜日は17:00に閉館します。", 0.22)]
    expect(answer("土曜日は何時まで開いていますか？", weak)).toContain("土曜日は17:00に閉館します。 [1]")
    expect(
      answer("いつ生まれましたか？", [passage(1, "時間", "いつでもどうぞ。質問はありますか。", 0.22)])
    ).toBe("これについて資料には何も見つかりませんでした。")
  })

  it("finds an Arabic word with and without its article, also in a row of a table", () => {
    const table =
      "| الخدمة | الرسوم |\n|---|---|\n| إصدار البطاقة | مجاناً |\n| بطاقة بديلة | 25 ريالاً |\n| تحويل | 3 |"
    expect(answer("كم رسوم البطاقة البديلة؟", [passage(1, "الرسوم", table)])).toBe(
      "**الرسوم**\n\n| الخدمة | الرسوم |\n|---|---|\n| إصدار البطاقة | مجاناً |\n| بطاقة بديلة | 25 ريالاً |\n\n[1]"
    )
  })

  it("closes a fence that was cut when the document was chunked", () => {
    const passages = [passage(1, "Deploy", "Deploy with this script:\n\n```sh\nmake deploy")]
    expect(answer("How do I deploy?", passages)).toBe(
      "**Deploy**\n\nDeploy with this script: [1]\n\n```sh\nmake deploy\n```\n\n[1]"
    )
  })

  it("quotes from the section's start and through its code also where the search found neither", () => {
    const within = (ordinal: number, isFound: boolean) => ({
      ...passage(1, "Sources > Add a source", "", 0.6, { documentId: "doc_sources", ordinal }),
      isFound
    })
    const passages = [
      { ...within(0, false), text: "A source is what an agent knows." },
      { ...within(1, true), text: "Add a source with a request:" },
      {
        ...within(2, false),
        text: `\`\`\`sh\ncurl /v1/sources\n\`\`\`\n\nIt answers 201.${" It is read at once.".repeat(60)}`
      }
    ]
    expect(answer("How do I add a source?", passages)).toBe(
      "**Sources › Add a source**\n\nA source is what an agent knows.\n\nAdd a source with a request: [1]\n\n" +
        "```sh\ncurl /v1/sources\n```\n\n[1]"
    )
    // What is left out in between ends the quotation.
    const apart = passages.map((found) => ({ ...found, ordinal: found.ordinal * 2 }))
    expect(answer("How do I add a source?", apart)).toBe(
      "**Sources › Add a source**\n\nAdd a source with a request: [1]"
    )
  })

  it("is not moved by words that only stand around what was found", () => {
    const passages = [
      { ...passage(1, "Shop", "We are open daily.", 0.2), isFound: true },
      {
        ...passage(1, "Shop", "A refund is paid to your card.", 0.2, { documentId: "doc_1", ordinal: 1 }),
        isFound: false
      }
    ]
    expect(answer("Is a refund paid to my card?", passages)).toBe("I found nothing on that in the sources.")
  })

  it("shows notes, tabs and definitions without their marks", () => {
    const text = [
      "Install the package:",
      "",
      "::: code-group",
      "```sh [npm]\nnpm install\n```",
      ":::",
      "",
      '!!! warning "Old versions"',
      "",
      "    Update the package first.",
      "",
      ":::tip",
      "The package is small.",
      ":::",
      "",
      "**The package can be:**",
      "",
      "- small",
      "- signed",
      "",
      "> [!NOTE]",
      "> The package is signed.",
      "",
      "> [!warning] Old keys",
      "> Its key changes each year.",
      "",
      ": The package needs Node.",
      "",
      `    Install it before.${" It takes a minute.".repeat(60)}`
    ].join("\n")
    const told = (question: string) => answer(question, [passage(1, "package.md", text)])
    expect(told("How do I install the package?")).toBe(
      [
        "**package**\n\nInstall the package: [1]\n\n```sh [npm]\nnpm install\n```\n\n[1]",
        "**Old versions:** Update the package first.",
        "**Tip:** The package is small.",
        "**The package can be:**",
        "- small\n- signed",
        "**Note:** The package is signed.",
        "**Old keys:** Its key changes each year.",
        "The package needs Node. [1]"
      ].join("\n\n")
    )
  })

  it("quotes only the entries of a list of definitions that contain the most words", () => {
    const entry = (term: string, text: string) => `**${term}**\n${text}`
    const text = [
      "The options of the command are:",
      entry("\\--all", "Includes ignored and untracked files."),
      entry("\\--quiet", "Prints nothing."),
      entry("\\--files", "Includes untracked files.\n\nThey are then removed."),
      entry("\\--index", "Restores the index.")
    ].join("\n\n")
    expect(answer("How are untracked files included?", [passage(1, "OPTIONS", text)])).toBe(
      "**OPTIONS**\n\n**\\--all** Includes ignored and untracked files.\n\n" +
        "**\\--files** Includes untracked files.\n\nThey are then removed. [1]"
    )
    const steps = "**Step 1**\nOpen the settings.\n\n**Step 2**\nChoose a plan."
    expect(answer("How do I choose a plan?", [passage(1, "Plans", steps)])).toBe(
      "**Plans**\n\n**Step 1** Open the settings.\n\n**Step 2** Choose a plan. [1]"
    )
  })

  it("keeps the lines of code, lists and tables in quotes", () => {
    const text = [
      "> [!note] Install",
      "> Install the package:",
      ">",
      "> ```sh",
      "> npm ci",
      "> > npm start",
      "> ```",
      "> > 1. Open it.",
      "> > 2. Sign in.",
      "",
      "```",
      "> npm test",
      "```",
      "",
      "> ```",
      "> npm stop",
      "",
      "It has stopped."
    ].join("\n")
    expect(answer("How do I install the package?", [passage(1, "Start", text)])).toBe(
      "**Start**\n\n**Install:** Install the package: [1]\n\n```sh\nnpm ci\n> npm start\n```\n\n[1]\n\n" +
        "1. Open it.\n2. Sign in. [1]\n\n```\n> npm test\n```\n\n[1]\n\n```\nnpm stop\n```\n\n[1]\n\nIt has stopped. [1]"
    )
  })

  it("quotes what follows the best paragraph in its passage rather than what is before it", () => {
    const lead = passage(1, "Timers", `${"A timer waits. ".repeat(55).trim()}`)
    const found = passage(
      1,
      "Timers",
      `A month is a long delay of a timer.${" It is not exact.".repeat(30)}\n\nA larger delay is set to 1.${" It is short.".repeat(30)}`,
      0.5,
      { ordinal: 1 }
    )
    const reply = answer("Which delay of a month has a timer?", [lead, found])
    expect(reply).toMatch(/^\*\*Timers\*\*\n\nA month is a long delay/)
    expect(reply).toContain("A larger delay is set to 1.")
  })

  it("leaves out a numbered table of contents", () => {
    const text =
      "1. [Is insertion slow?](#slow)\n2. [Is it free?](#free)\n\nInsertion is slow without a transaction."
    expect(answer("Why is insertion slow?", [passage(1, "Questions", text)])).toBe(
      "**Questions**\n\nInsertion is slow without a transaction. [1]"
    )
  })

  it("shows words in angle brackets that are not tags", () => {
    const text = "The \\<message> part of `stash <message>` is <b>optional</b>."
    expect(answer("Is the message part optional?", [passage(1, "stash \\<message>", text)])).toContain(
      "**stash <message>**\n\nThe \\<message> part of `stash <message>` is optional. [1]"
    )
  })

  it("quotes a short section to its end", () => {
    const text = "The trash is emptied at night.\n\nDefaults to 30 days."
    expect(answer("When is the trash emptied?", [passage(1, "Trash", text)])).toBe(
      "**Trash**\n\nThe trash is emptied at night.\n\nDefaults to 30 days. [1]"
    )
    const between = "An administrator may empty it at any time.".repeat(20)
    expect(
      answer("When is the trash emptied?", [passage(1, "Trash", text.replace("\n\n", `\n\n${between}\n\n`))])
    ).toContain("30 days")
  })

  it("keeps hard line breaks, and leaves out the tags of site generators that stand alone", () => {
    const text = [
      '{{< figure src="trash.png" caption="The trash" >}}',
      "",
      "{% alert %}",
      "**Emptied:** at night\\",
      "**Days:** 30",
      "{% endalert %}",
      "",
      '{{% hint style="info" %}}',
      "",
      "- {% channel trash %}",
      "- `{% raw %}`",
      "",
      "{{ days }} in days."
    ].join("\n")
    expect(answer("When is the trash emptied?", [passage(1, "Trash", text)])).toBe(
      "**Trash**\n\n**Emptied:** at night\n**Days:** 30\n\n- {% channel trash %}\n- `{% raw %}`\n\n{{ days }} in days. [1]"
    )
  })

  it("quotes a section too that says more than the one before it, and none that only repeats it", () => {
    const short = passage(1, "Trash", "Deleted documents stay in the trash.")
    const longer = passage(
      2,
      "Delays",
      "Deleted documents stay in the trash for 30 days. An administrator sets how many."
    )
    expect(answer("How long do deleted documents stay in the trash?", [short, longer])).toContain("30 days")
    expect(answer("How long do deleted documents stay in the trash?", [longer, short])).not.toContain(
      "**Trash**"
    )
  })

  it("leaves out pictures and tables of contents", () => {
    const contents = "- [Open a shop](#open)\n  - [Close a shop](#close)\n- [Sell](#sell)"
    const text = `A shop sells.\n\n${contents}\n\n![a shop](shop.png)\n\nA shop opens at nine.`
    expect(answer("When does a shop open?", [passage(1, "Shop", text)])).toBe(
      "**Shop**\n\nA shop sells.\n\nA shop opens at nine. [1]"
    )
  })

  it("quotes code that chunking has cut as one block, and no more than sixty lines of it", () => {
    const lines = Array.from({ length: 70 }, (_, at) => `  line ${at}`)
    const cut = (ordinal: number, some: ReadonlyArray<string>) =>
      passage(1, "Compose", ["```yaml", ...some, "```"].join("\n"), 0.5, { documentId: "doc_1", ordinal })
    const first = {
      ...cut(1, lines.slice(0, 20)),
      text: `The compose file:\n\n${cut(1, lines.slice(0, 20)).text}`
    }
    const question = "What is in the compose file?"
    expect(answer(question, [first, cut(2, lines.slice(20, 40))])).toBe(
      `**Compose**\n\nThe compose file: [1]\n\n\`\`\`yaml\n${lines.slice(0, 40).join("\n")}\n\`\`\`\n\n[1]`
    )
    const around = { ...passage(1, "Compose", "The compose file:", 0.5, { documentId: "doc_1", ordinal: 0 }) }
    const three = [1, 2, 3].map((at) => cut(at, lines.slice(at * 10, at * 10 + 10)))
    expect(answer(question, [around, ...three])).toContain(lines.slice(10, 40).join("\n"))
    expect(answer(question, [first, cut(2, lines.slice(20))])).toContain("  line 59\n…\n```\n\n[1]")
    // Code of another language, and code after text that is left out, is another block.
    const shell = { ...cut(2, ["make"]), text: "```sh\nmake\n```" }
    expect(answer(question, [first, shell])).toContain("```\n\n[1]\n\n```sh\nmake\n```")
    expect(answer(question, [first, cut(3, lines.slice(20, 40))])).not.toContain("line 20")
  })

  it("quotes a table that chunking has cut as one, under one header", () => {
    const within = (ordinal: number) => ({ documentId: "doc_options", ordinal })
    const passages = [
      passage(
        1,
        "Options",
        "| Option   | Effect  |\n|----------|---------|\n| strict option | on |",
        0.6,
        within(0)
      ),
      passage(1, "Options", "| Option | Effect |\n|---|---|\n| loose option | off |", 0.5, within(1)),
      passage(1, "Options", "| Option | Other |\n|---|---|\n| third option | x |", 0.5, within(2))
    ]
    expect(answer("Which option?", passages)).toBe(
      "**Options**\n\n| Option | Effect |\n|----------|---------|\n| strict option | on |\n| loose option | off |\n\n[1]\n\n" +
        "| Option | Other |\n|---|---|\n| third option | x |\n\n[1]"
    )
  })

  it("shows a pre element as code", () => {
    const text =
      'Hash a password:\n\n<pre><code class="cmd">hash-password\n\t[--plain &lt;word&gt;]</code></pre>'
    expect(answer("How do I hash a password?", [passage(1, "Hash", text)])).toBe(
      "**Hash**\n\nHash a password: [1]\n\n```\nhash-password\n\t[--plain <word>]\n```\n\n[1]"
    )
  })

  it("says nothing twice, and quotes three sections at most", () => {
    const passages = [
      passage(1, "A", "The warranty lasts two years for batteries."),
      passage(2, "B", "The warranty lasts two years for batteries!"),
      passage(3, "C", "Years of warranty: ten for the batteries of boats."),
      passage(4, "D", "Batteries of cars have a warranty of four years."),
      passage(5, "E", "Six years of warranty are given on lamps and batteries.")
    ]
    const text = answer("How many years of warranty do batteries have?", passages)
    expect(text).toContain("The warranty lasts two years for batteries")
    expect([text.includes("[1]"), text.includes("[2]")].filter(Boolean)).toHaveLength(1)
    expect(text.match(/^\*\*[A-E]\*\*$/gm)).toHaveLength(3)
  })

  const word = FastCheck.constantFrom(
    "refund",
    "card",
    "`code",
    "```",
    "\n\n",
    "\n",
    "|",
    "| a |",
    "|---|",
    "- ",
    "1. ",
    "# ",
    "[x](",
    "![",
    "e.g.",
    "It",
    "is",
    ". ",
    ": ",
    "> ",
    "\u0000",
    "👋",
    "退款",
    ""
  )
  it.prop(
    "any passages give marked excerpts of one to three of them or none, the same each time",
    [
      FastCheck.array(FastCheck.array(word, { maxLength: 60 }), { maxLength: 4 }),
      FastCheck.array(word, { maxLength: 6 })
    ],
    ([texts, question]) => {
      const passages = texts.map((words, place) => passage(place + 1, "Title", words.join(" ")))
      const text = extract(question.join(" "), passages)
      expect(extract(question.join(" "), passages)).toBe(text)
      const marks = text.match(/\[\d+\](?=\s)/g) ?? []
      expect(new Set(marks).size).toBeLessThanOrEqual(3)
      expect(text.startsWith(extractiveNoticesFor(question.join(" ")).nothingFound) || marks.length > 0).toBe(
        true
      )
      for (const mark of marks) expect(Number(mark.slice(1, -1))).toBeLessThanOrEqual(passages.length)
    }
  )

  it.effect("streams word by word and ends with a finish and estimated tokens", () =>
    Effect.gen(function* () {
      const runtime = yield* ModelRuntime
      const question = "How long does a refund take?"
      const request = { model: null, prompt: Prompt.make(question), tools: [], question, passages: all }
      const parts = Chunk.toReadonlyArray(yield* Stream.runCollect(runtime.reply(request)))
      const deltas = parts.flatMap((part) => (part._tag === "TextDelta" ? [part.delta] : []))
      expect(deltas.join("")).toBe(extract(question, all))
      expect(deltas.every((delta) => /^\s*\S+$/.test(delta))).toBe(true)
      expect(parts.at(-1)).toMatchObject({ _tag: "Finish", reason: "stop", inputTokens: 7 })
    }).pipe(Effect.provide(layerExtractive))
  )
})
