/** Reader `notion`: the pages shared with a Notion integration. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import {
  type SourceReader,
  setting,
  sourceReader,
  type SteppedDocument
} from "../../capabilities/SourceReaders.ts"
import { trimmed } from "../../domain/Text.ts"
import { type Block, markdownOfBlocks } from "./NotionMarkdown.ts"
import { request, requestJson, unexpectedAnswer } from "./Requests.ts"

const version = "2022-06-28"
/** Number of pages of one step. Each needs requests for its blocks. */
const pagesPerStep = 10
/** Maximum number of blocks of one page. Further ones are skipped. */
const maxBlocks = 5_000
const maxDepth = 8
/**
 * Minimum age of an edit in milliseconds for its time to serve as the revision. Notion rounds times down to the minute,
 * so a later edit may have the same time.
 */
const minRevisionAgeMillis = 120_000

const Settings = Schema.Struct({
  token: trimmed(1_000).annotations(
    setting({
      label: { en: "Integration token", de: "Integrations-Token" },
      hint: {
        en: "The integration reads the pages that it is connected with in Notion.",
        de: "Die Integration liest die Seiten, mit denen sie in Notion verbunden ist."
      },
      secret: true
    })
  )
})

const RichText = Schema.Array(Schema.Struct({ plain_text: Schema.String }))

const Page = Schema.Struct({
  id: Schema.String,
  url: Schema.String,
  last_edited_time: Schema.String,
  archived: Schema.optional(Schema.Boolean),
  in_trash: Schema.optional(Schema.Boolean),
  properties: Schema.Record({
    key: Schema.String,
    value: Schema.Struct({ type: Schema.optional(Schema.String), title: Schema.optional(Schema.Unknown) })
  })
})

const listOf = <A, I>(item: Schema.Schema<A, I>) =>
  Schema.Struct({
    results: Schema.Array(item),
    has_more: Schema.Boolean,
    next_cursor: Schema.NullOr(Schema.String)
  })
const Pages = listOf(Page)
const Blocks = Schema.parseJson(
  listOf(
    Schema.Struct(
      { id: Schema.String, type: Schema.String, has_children: Schema.Boolean },
      { key: Schema.String, value: Schema.Unknown }
    )
  )
)
const decodeBlocks = Schema.decodeUnknownOption(Blocks)
const isRichText = Schema.is(RichText)

const titleOf = ({ properties }: typeof Page.Type): string => {
  const title = Object.values(properties).find(({ type }) => type === "title")?.title
  return isRichText(title) ? title.map(({ plain_text }) => plain_text).join("") : ""
}

/** `origin` is Notion's own service, or a server of a test. */
export const notion = (origin = "https://api.notion.com"): SourceReader => {
  const headersOf = (token: string) => ({ authorization: `Bearer ${token}`, "notion-version": version })

  /** The blocks of a page or block with nested blocks; null when it does not exist. */
  const blocksOf = (token: string, page: string) => {
    let count = 0
    const readBlocks = (
      id: string,
      depth: number
    ): Effect.Effect<
      ReadonlyArray<Block> | null,
      Effect.Effect.Error<ReturnType<typeof request>>,
      Effect.Effect.Context<ReturnType<typeof request>>
    > =>
      Effect.gen(function* () {
        const blocks: Array<Block> = []
        let cursor: string | null = null
        do {
          const query = new URLSearchParams({
            page_size: "100",
            ...(cursor === null ? {} : { start_cursor: cursor })
          })
          const response = yield* request({
            service: "Notion",
            url: `${origin}/v1/blocks/${encodeURIComponent(id)}/children?${query.toString()}`,
            headers: headersOf(token),
            acceptedStatuses: [404]
          })
          if (response.status === 404) return null
          const decoded = decodeBlocks(new TextDecoder().decode(response.body))
          if (decoded._tag === "None") return yield* unexpectedAnswer("Notion")
          for (const { has_children, id: inner, type, ...rest } of decoded.value.results) {
            if (++count > maxBlocks) return blocks
            // A nested page is a document of its own.
            const isPage = type === "child_page" || type === "child_database"
            const hasChildren = has_children && !isPage && depth < maxDepth
            const children: ReadonlyArray<Block> | null = hasChildren
              ? yield* readBlocks(inner, depth + 1)
              : []
            blocks.push({ type, value: rest[type], children: children ?? [] })
          }
          cursor = decoded.value.has_more ? decoded.value.next_cursor : null
        } while (cursor !== null)
        return blocks
      })
    return readBlocks(page, 0)
  }

  return sourceReader({
    name: "notion",
    title: { en: "Notion", de: "Notion" },
    description: {
      en: "The pages that an integration is connected with.",
      de: "Die Seiten, mit denen eine Integration verbunden ist."
    },
    settings: Settings,
    cursor: Schema.Null,
    limitsDocuments: false,
    position: Schema.Struct({ after: Schema.String }),
    step: ({ token }, { known, position }) =>
      Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        // Sorted by time of edit, so a page that is edited meanwhile moves to the end. It may be read twice, but is
        // never missed.
        const found = yield* requestJson(
          {
            service: "Notion",
            url: `${origin}/v1/search`,
            headers: headersOf(token),
            json: {
              filter: { property: "object", value: "page" },
              sort: { timestamp: "last_edited_time", direction: "ascending" },
              page_size: pagesPerStep,
              ...(position === null ? {} : { start_cursor: position.after })
            }
          },
          Pages
        )
        const documents: Array<SteppedDocument> = []
        const unchanged: Array<string> = []
        const skipped: Array<{ readonly uri: string; readonly reason: string }> = []
        for (const page of found.results) {
          const { id, last_edited_time: revision, url: uri } = page
          if (page.archived === true || page.in_trash === true) skipped.push({ uri, reason: "archived" })
          else if (known(uri) === revision) unchanged.push(uri)
          else {
            const blocks = yield* blocksOf(token, id)
            const title = titleOf(page)
            const content = blocks === null ? "" : markdownOfBlocks(blocks)
            if (blocks === null) skipped.push({ uri, reason: "gone" })
            else if (content === "" && title === "") skipped.push({ uri, reason: "empty" })
            else
              documents.push({
                uri,
                title: title === "" ? uri : title,
                format: "markdown",
                content: content === "" ? title : content,
                ...(now - Date.parse(revision) < minRevisionAgeMillis ? {} : { revision })
              })
          }
        }
        const after = found.has_more ? found.next_cursor : null
        return {
          documents,
          unchanged,
          skipped,
          next: after === null ? { done: null, complete: true } : { more: { after } }
        }
      })
  })
}
