/** Web pages of tests: the text before what is read, and the part of the page that is compared. */
import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { strToU8 } from "fflate"
import { DocumentParser } from "../../../src/capabilities/DocumentParser.ts"
import { layerInline } from "../../../src/capabilities/DocumentParser/Inline.ts"

const end = "This is the end of the introduction."

/** Long enough that the extraction does not repeat its work with less strict rules, as it does for short pages. */
export const introduction =
  Array.from(
    { length: 12 },
    (_, place) =>
      `<p>Part ${place}: the service runs on machines of your own, needs a database and a place for files, and is updated by
      one command that you run whenever you like. Each part of it can be replaced by another one of the same kind.</p>`
  ).join("") + `<p>${end}</p>`

/** The Markdown of the page after `from`, its introduction by default. */
export const read = (markup: string, from = end) =>
  Effect.flatMap(DocumentParser, (parser) =>
    parser.parse({
      bytes: strToU8(
        `<!doctype html><html><head><title>Help</title></head><body><nav><a href="/">Home</a></nav>${markup}<footer>Imprint</footer></body></html>`
      ),
      url: "https://shop.example/help"
    })
  ).pipe(
    Effect.map(({ content }) => content.slice(content.indexOf(from) + from.length).trim()),
    Effect.provide(layerInline({ maxPages: 50 }))
  )

export const main = (markup: string) => `<main><h1>Help</h1>${introduction}${markup}</main>`

type Cases = Readonly<Record<string, readonly [markup: string, content: string]>>

export const readsAll = (cases: Cases, page = main) => {
  for (const [name, [markup, content]] of Object.entries(cases))
    it.effect(name, () => Effect.map(read(page(markup)), (found) => expect(found).toBe(content)))
}
