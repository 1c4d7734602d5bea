/** Reader `confluence`: the current pages of a space in Confluence Cloud. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import {
  setting,
  sourceReader,
  type SteppedDocument,
  permanentError
} from "../../capabilities/SourceReaders.ts"
import { inSlices } from "../../concurrency/InSlices.ts"
import { HttpUrl } from "../../domain/knowledge/Source.ts"
import { Text, trimmed } from "../../domain/Text.ts"
import { scanSteps } from "../../domain/Xml.ts"
import { escaped, markdownOf } from "./HtmlText.ts"
import { urlAt, requestJson } from "./Requests.ts"

const pageSize = 50

const Settings = Schema.Struct({
  url: HttpUrl.annotations(
    setting({
      label: { en: "Address of the site", de: "Adresse der Site" },
      hint: { en: "https://example.atlassian.net", de: "https://example.atlassian.net" },
      address: true
    })
  ),
  space: Text.pipe(
    Schema.pattern(/^~?[A-Za-z0-9]{1,255}$/, { message: () => "Expected the key of a space" })
  ).annotations(
    setting({
      label: { en: "Key of the space", de: "Schlüssel des Bereichs" },
      hint: {
        en: "As it stands in the space's address: DOCS",
        de: "Wie er in der Adresse des Bereichs steht: DOCS"
      }
    })
  ),
  email: trimmed(254).annotations(
    setting({
      label: { en: "E-mail address of the account", de: "E-Mail-Adresse des Kontos" },
      hint: {
        en: "Everything that this account may see is read.",
        de: "Gelesen wird alles, was dieses Konto sehen darf."
      }
    })
  ),
  token: trimmed(1_000).annotations(setting({ label: { en: "API token", de: "API-Token" }, secret: true }))
})

const Spaces = Schema.Struct({
  results: Schema.Array(Schema.Struct({ id: Schema.String, key: Schema.String }))
})

const Pages = Schema.Struct({
  results: Schema.Array(
    Schema.Struct({
      id: Schema.String,
      title: Schema.String,
      status: Schema.String,
      version: Schema.Struct({ number: Schema.Number }),
      body: Schema.Struct({ storage: Schema.optional(Schema.Struct({ value: Schema.String })) }),
      _links: Schema.Struct({ webui: Schema.String })
    })
  ),
  _links: Schema.optional(Schema.Struct({ next: Schema.optional(Schema.String) }))
})

const Position = Schema.Struct({ space: Schema.String, after: Schema.String })

const noSpace = (key: string) =>
  permanentError("no_space", `There is no space ${key}, or this account may not see it.`)

/** Parts of macros and tasks that are not text of the page, but for titles of macros. */
const skippedElements = new Set(["parameter", "placeholder", "task-id", "task-uuid", "task-status"])
/** HTML elements for those of Confluence. */
const htmlElements = new Map([
  ["task-list", "ul"],
  ["task", "li"]
])
/** The value as it is written, which is text of HTML, too. */
const attributeOf = (tag: string, name: string): string => tag.split(`${name}="`)[1]?.split('"')[0] ?? ""

/**
 * Converts Confluence's storage format to HTML: code as code, links as their text or else the title of their page, other
 * macros as their inner text. Yields undefined where the caller may pause.
 */
function* htmlOfStorage(storage: string): Generator<undefined, string> {
  let html = ""
  let skippedDepth = 0
  /** What an open link shows if it has no text of its own. */
  let linkTitle = ""
  yield* scanSteps(storage, {
    open: (name, tag) => {
      if (skippedElements.has(name) && attributeOf(tag, "ac:name") !== "title") skippedDepth++
      if (skippedDepth > 0) return
      if (!/^(?:ac|ri):/u.test(tag)) html += name === "time" ? attributeOf(tag, "datetime") : `<${tag}>`
      else if (name === "plain-text-body") html += "<pre><code>"
      else if (name === "link") linkTitle = ""
      else if (name === "link-body" || name === "plain-text-link-body") linkTitle = ""
      else if (tag.startsWith("ri:page")) linkTitle = attributeOf(tag, "ri:content-title")
      else if (tag.startsWith("ri:url")) linkTitle = attributeOf(tag, "ri:value")
      else if (htmlElements.has(name)) html += `<${htmlElements.get(name)}>`
    },
    close: (name) => {
      if (skippedElements.has(name)) skippedDepth = Math.max(0, skippedDepth - 1)
      else if (skippedDepth > 0) return
      else if (name === "plain-text-body") html += "</code></pre>"
      else if (name === "link") {
        html += linkTitle
        linkTitle = ""
      } else if (htmlElements.has(name)) html += `</${htmlElements.get(name)}>`
      else if (/^[a-z][a-z0-9]{0,15}$/u.test(name) && !elementsWithoutEnd.has(name)) html += `</${name}>`
    },
    // Named entities of HTML are common, and are written as HTML has them.
    text: (text, written) => {
      if (skippedDepth === 0) html += written ?? escaped(text)
    }
  })
  return html
}

/** Names, without prefix, of elements that have no end tag in HTML. */
const elementsWithoutEnd = new Set([
  "br",
  "image",
  "emoticon",
  "page",
  "url",
  "user",
  "attachment",
  "layout",
  "time"
])

const authorization = (email: string, token: string) => ({
  authorization: `Basic ${Buffer.from(`${email}:${token}`).toString("base64")}`
})

export const confluence = sourceReader({
  name: "confluence",
  title: { en: "Confluence", de: "Confluence" },
  description: {
    en: "The pages of a space in Confluence Cloud.",
    de: "Die Seiten eines Bereichs in Confluence Cloud."
  },
  settings: Settings,
  cursor: Schema.Null,
  limitsDocuments: false,
  position: Position,
  step: ({ email, space: key, token, url }, { known, position }) =>
    Effect.gen(function* () {
      const headers = authorization(email, token)
      const service = "Confluence"
      const findSpace = Effect.gen(function* () {
        const query = new URLSearchParams({ keys: key, limit: "1" })
        const { results } = yield* requestJson(
          { service, headers, url: urlAt(url, `/wiki/api/v2/spaces?${query.toString()}`) },
          Spaces
        )
        const [found] = results
        return found === undefined ? yield* noSpace(key) : found.id
      })
      const space = position?.space ?? (yield* findSpace)
      const query = new URLSearchParams({
        limit: String(pageSize),
        "body-format": "storage",
        status: "current",
        sort: "id",
        ...(position === null ? {} : { cursor: position.after })
      })
      const { _links, results } = yield* requestJson(
        {
          service,
          headers,
          url: urlAt(url, `/wiki/api/v2/spaces/${encodeURIComponent(space)}/pages?${query.toString()}`)
        },
        Pages
      )
      const documents: Array<SteppedDocument> = []
      const unchanged: Array<string> = []
      const unread: Array<{ readonly uri: string; readonly reason: string }> = []
      for (const page of results) {
        const uri = urlAt(url, `/wiki${page._links.webui}`)
        const revision = String(page.version.number)
        if (page.status !== "current") continue
        if (known(uri) === revision) unchanged.push(uri)
        else {
          const html = yield* inSlices(htmlOfStorage(page.body.storage?.value ?? ""))
          const text = yield* markdownOf(html, page.title, uri)
          if (text === null) {
            unread.push({ uri, reason: "unreadable" })
            continue
          }
          const content = text === "" ? page.title : text
          documents.push({ uri, title: page.title, format: "markdown", content, revision })
        }
      }
      const after = _links?.next === undefined ? null : new URL(_links.next, url).searchParams.get("cursor")
      return {
        documents,
        unchanged,
        unread,
        next: after === null ? { done: null, complete: true } : { more: { space, after } }
      }
    })
})
