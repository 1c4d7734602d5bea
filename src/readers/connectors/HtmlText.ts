/** HTML of other systems as Markdown. */
import * as Effect from "effect/Effect"
import { DocumentParser } from "../../capabilities/DocumentParser.ts"

/** Text that may stand in HTML. */
export const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")

/** Of one article's body; empty where there is nothing to read in it. Links are resolved against `url`. */
export const markdownOf = (html: string, title: string, url: string) =>
  Effect.gen(function* () {
    if (html.trim() === "") return ""
    const parser = yield* DocumentParser
    const page = `<!doctype html><html><head><meta charset="utf-8"><title>${escaped(title)}</title></head><body><main><article>${html}</article></main></body></html>`
    return yield* parser
      .parse({ bytes: new TextEncoder().encode(page), contentType: "text/html; charset=utf-8", url })
      .pipe(
        Effect.map(({ content }) => content),
        Effect.orElseSucceed(() => "")
      )
  })
