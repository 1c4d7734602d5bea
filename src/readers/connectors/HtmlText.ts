/** Converts HTML of other systems to Markdown. */
import * as Effect from "effect/Effect"
import { DocumentParser, mayParseLater } from "../../capabilities/DocumentParser.ts"

/** Escapes text for HTML. */
export const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")

/**
 * The body of one article; empty when it has no text, and null when it could not be read now. Links are resolved against
 * `url`.
 */
export const markdownOf = (html: string, title: string, url: string) =>
  Effect.gen(function* () {
    if (html.trim() === "") return ""
    const parser = yield* DocumentParser
    const page = `<!doctype html><html><head><meta charset="utf-8"><title>${escaped(title)}</title></head><body><main><article>${html}</article></main></body></html>`
    return yield* parser
      .parse({ bytes: new TextEncoder().encode(page), contentType: "text/html; charset=utf-8", url })
      .pipe(
        Effect.map(({ content }) => content),
        Effect.catchAll((error) => Effect.succeed(mayParseLater(error) ? null : ""))
      )
  })
