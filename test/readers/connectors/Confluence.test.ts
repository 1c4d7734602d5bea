/** What is read of pages in the storage format of Confluence. */
import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { confluence } from "../../../src/readers/connectors/Confluence.ts"
import { layerReaders } from "../Site.ts"
import { json, serveStub } from "./StubService.ts"

const start = { cursor: null, position: null, known: () => undefined }

/** The text of a page with this content. */
const read = (value: string) =>
  Effect.gen(function* () {
    const page = {
      id: "9",
      title: "Page",
      status: "current",
      version: { number: 1 },
      body: { storage: { value } },
      _links: { webui: "/spaces/DOCS/pages/9" }
    }
    const { origin } = yield* serveStub((_, { path }) =>
      path.includes("/spaces?") ? json({ results: [{ id: "1", key: "DOCS" }] }) : json({ results: [page] })
    )
    const settings = { url: origin, space: "DOCS", email: "reader@example.com", token: "t" }
    const { documents } = yield* confluence.step(settings, start)
    return documents.map(({ content }) => content).join()
  }).pipe(Effect.provide(layerReaders))

it.scopedLive("entities are the characters that they name", () =>
  Effect.gen(function* () {
    const found = yield* read(
      "<h1>&Uuml;bersicht</h1><p>Die K&uuml;che &ouml;ffnet um 9&nbsp;Uhr &ndash; f&uuml;r R&amp;D, 5 &lt; 6.</p>"
    )
    expect(found.replace("\u00a0", " ")).toBe("## Übersicht\n\nDie Küche öffnet um 9 Uhr – für R&D, 5 < 6.")
  })
)

it.scopedLive("code stays as it is written", () =>
  Effect.gen(function* () {
    const found = yield* read(
      '<ac:structured-macro ac:name="code"><ac:parameter ac:name="language">java</ac:parameter><ac:plain-text-body><![CDATA[List<String> a = b && "&uuml;";]]></ac:plain-text-body></ac:structured-macro>'
    )
    expect(found).toBe('```\nList<String> a = b && "&uuml;";\n```')
  })
)

it.scopedLive("a link is its own text, or else the title of its page", () =>
  Effect.gen(function* () {
    const page = '<ri:page ri:content-title="R&amp;D &uuml;ber"/>'
    const found = yield* read(
      `<p>See <ac:link>${page}<ac:plain-text-link-body><![CDATA[the <page>]]></ac:plain-text-link-body></ac:link>, <ac:link>${page}<ac:link-body><strong>here</strong></ac:link-body></ac:link> and <ac:link>${page}</ac:link>.</p>`
    )
    expect(found).toBe("See the \\<page>, **here** and R&D über.")
  })
)

it.scopedLive("titles of macros, such as a state or the head of a panel, are text", () =>
  Effect.gen(function* () {
    const macro = (name: string, title: string, body: string) =>
      `<ac:structured-macro ac:name="${name}"><ac:parameter ac:name="title">${title}</ac:parameter><ac:parameter ac:name="colour">Green</ac:parameter>${body}</ac:structured-macro>`
    const found = yield* read(
      `<p>The state is ${macro("status", "In review", "")} now.</p>${macro("info", "Careful", "<ac:rich-text-body><p>It is hot.</p></ac:rich-text-body>")}`
    )
    expect(found).toBe("The state is In review now.\n\nCareful\n\nIt is hot.")
  })
)

it.scopedLive("tasks are a list, and dates are text", () =>
  Effect.gen(function* () {
    const task = (id: number, text: string) =>
      `<ac:task><ac:task-id>${id}</ac:task-id><ac:task-status>incomplete</ac:task-status><ac:task-body>${text}</ac:task-body></ac:task>`
    const found = yield* read(
      `<p>Due on <time datetime="2026-01-15" />, at noon:</p><ac:task-list>${task(7, "Pay it")}${task(8, "Ask again")}</ac:task-list>`
    )
    expect(found).toBe("Due on 2026-01-15, at noon:\n\n- Pay it\n- Ask again")
  })
)

it.scopedLive("a sign in an attribute does not end its tag", () =>
  Effect.gen(function* () {
    const found = yield* read(
      '<p><ac:image ac:alt="x > y"><ri:attachment ri:filename="a.png"/></ac:image>One<br/>two</p>'
    )
    expect(found).toBe("One\ntwo")
  })
)
