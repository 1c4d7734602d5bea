/** Reader `zendesk`: the published articles of a Zendesk help centre, with labels for restricted ones. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { setting, sourceReader, type SteppedDocument } from "../../capabilities/SourceReaders.ts"
import { optional } from "../../domain/Optional.ts"
import { HttpUrl } from "../../domain/knowledge/Source.ts"
import { Text, trimmed } from "../../domain/Text.ts"
import { markdownOf } from "./HtmlText.ts"
import { urlAt, requestJson } from "./Requests.ts"

const pageSize = 100

const Settings = Schema.Struct({
  url: HttpUrl.annotations(
    setting({
      label: { en: "Address of the help centre", de: "Adresse des Help Centers" },
      hint: { en: "https://example.zendesk.com", de: "https://example.zendesk.com" },
      address: true
    })
  ),
  locale: Text.pipe(
    Schema.pattern(/^[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})?$/, {
      message: () => "Expected a locale such as en-us or de"
    })
  ).annotations(
    setting({ label: { en: "Language", de: "Sprache" }, hint: { en: "en-us, de, …", de: "en-us, de, …" } })
  ),
  email: optional(
    trimmed(254).annotations(
      setting({
        label: { en: "E-mail address of the token's agent", de: "E-Mail-Adresse zum Token" },
        hint: { en: "Only with a token", de: "Nur mit einem Token" }
      })
    )
  ),
  token: optional(
    trimmed(1_000).annotations(
      setting({
        label: { en: "API token", de: "API-Token" },
        hint: {
          en: "Not needed for a help centre that everybody may read",
          de: "Nicht nötig für ein Help Center, das alle lesen dürfen"
        },
        secret: true
      })
    )
  )
})

const Article = Schema.Struct({
  id: Schema.Number,
  html_url: Schema.String,
  title: Schema.String,
  body: Schema.NullOr(Schema.String),
  draft: Schema.Boolean,
  updated_at: Schema.String,
  /** Null for everybody. */
  user_segment_id: Schema.optional(Schema.NullOr(Schema.Number)),
  user_segment_ids: Schema.optional(Schema.Array(Schema.Number))
})

const Page = Schema.Struct({
  articles: Schema.Array(Article),
  meta: Schema.Struct({
    has_more: Schema.Boolean,
    after_cursor: Schema.optional(Schema.NullOr(Schema.String))
  })
})

const Position = Schema.Struct({ after: Schema.String })

const authorization = (email: string | undefined, token: string | undefined) =>
  token === undefined
    ? {}
    : {
        authorization:
          email === undefined
            ? `Bearer ${token}`
            : `Basic ${Buffer.from(`${email}/token:${token}`).toString("base64")}`
      }

/** The label that a source needs for articles of this user segment. */
const segmentLabel = (id: number) => `zendesk-segment-${id}`

/** Labels of the user segments that may read the article; undefined for everybody. */
const labelsOf = ({ user_segment_id: one, user_segment_ids: several = [] }: typeof Article.Type) => {
  const segments = new Set([...(typeof one === "number" ? [one] : []), ...several])
  return segments.size === 0 ? undefined : [...segments].map(segmentLabel)
}

export const zendesk = sourceReader({
  name: "zendesk",
  title: { en: "Zendesk help centre", de: "Zendesk Help Center" },
  description: {
    en: "The published articles of one language that everybody may read.",
    de: "Die veröffentlichten Artikel einer Sprache, die alle lesen dürfen."
  },
  settings: Settings,
  cursor: Schema.Null,
  position: Position,
  step: ({ email, locale, token, url }, { known, position }) =>
    Effect.gen(function* () {
      const query = new URLSearchParams({
        "page[size]": String(pageSize),
        sort_by: "created_at",
        sort_order: "asc"
      })
      if (position !== null) query.set("page[after]", position.after)
      const { articles, meta } = yield* requestJson(
        {
          service: "Zendesk",
          url: urlAt(url, `/api/v2/help_center/${locale.toLowerCase()}/articles.json?${query.toString()}`),
          headers: authorization(email, token)
        },
        Page
      )
      const documents: Array<SteppedDocument> = []
      const unchanged: Array<string> = []
      const unread: Array<{ readonly uri: string; readonly reason: string }> = []
      const skipped: Array<{ readonly uri: string; readonly reason: string }> = []
      for (const article of articles) {
        const { body, draft, html_url: uri, title, updated_at } = article
        const labels = labelsOf(article)
        // Permissions of an article can change while its text stays the same.
        const revision = [updated_at, ...(labels ?? [])].join(" ")
        if (draft) skipped.push({ uri, reason: "draft" })
        else if (known(uri) === revision) unchanged.push(uri)
        else {
          const text = yield* markdownOf(body ?? "", title, uri)
          if (text === null) {
            unread.push({ uri, reason: "unreadable" })
            continue
          }
          const content = text === "" ? title : text
          const scope = labels === undefined ? {} : { labels }
          documents.push({ uri, title, format: "markdown", content, revision, ...scope })
        }
      }
      const after = meta.has_more ? meta.after_cursor : undefined
      return {
        documents,
        unchanged,
        unread,
        skipped,
        next: typeof after === "string" ? { more: { after } } : { done: null, complete: true }
      }
    })
})
