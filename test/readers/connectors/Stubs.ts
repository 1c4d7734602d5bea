/** One stub for each reader that comes with Spoke. */
import { createHash } from "node:crypto"
import type { SourceReader } from "../../../src/capabilities/SourceReaders.ts"
import { confluence } from "../../../src/readers/connectors/Confluence.ts"
import { feed } from "../../../src/readers/connectors/Feed.ts"
import { notion } from "../../../src/readers/connectors/Notion.ts"
import { repository } from "../../../src/readers/connectors/Repository.ts"
import { zendesk } from "../../../src/readers/connectors/Zendesk.ts"
import {
  type Answer,
  type Asked,
  json,
  pageOf,
  parameter,
  tarball,
  timeOf,
  type World
} from "./StubService.ts"

export interface Stub {
  readonly reader: (origin: string) => SourceReader
  readonly settings: (origin: string) => Readonly<Record<string, unknown>>
  readonly respond: (world: World, asked: Asked, origin: string) => Answer | undefined
  /** Requests of a first pass over five documents. */
  readonly requests: number
  /** What every request has to be sent with. */
  readonly token?: { readonly header: string; readonly value: string }
}

const pageSize = 2

const feedStub: Stub = {
  reader: () => feed,
  settings: (origin) => ({ url: `${origin}/feed.xml`, keep: "listed" }),
  requests: 1,
  respond: (world, { headers }, origin) => {
    const etag = `"${createHash("sha256")
      .update(JSON.stringify([...world]))
      .digest("hex")}"`
    if (headers["if-none-match"] === etag) return { status: 304, body: "" }
    const items = [...world].map(
      ([id, { revision, text, title }]) => `<item><title>${title}</title><link>${origin}/posts/${id}</link>
        <guid isPermaLink="false">${id}</guid><pubDate>${timeOf(revision)}</pubDate>
        <description><![CDATA[<p>${text}</p>]]></description></item>`
    )
    return {
      headers: { "content-type": "application/rss+xml", etag },
      body: `<?xml version="1.0"?><rss version="2.0"><channel><title>News</title><link>${origin}</link>${items.join("")}</channel></rss>`
    }
  }
}

const shaOf = (world: World) =>
  createHash("sha1")
    .update(JSON.stringify([...world]))
    .digest("hex")

const gitStub: Stub = {
  reader: () => repository,
  settings: (origin) => ({
    url: `${origin}/acme/docs`,
    provider: "github",
    token: "ghp_secret",
    branch: "main"
  }),
  requests: 2,
  token: { header: "authorization", value: "Bearer ghp_secret" },
  respond: (world, { path }) => {
    const sha = shaOf(world)
    if (path === "/api/v3/repos/acme/docs/commits/main") return json({ sha, commit: { message: "Change" } })
    if (!path.startsWith("/api/v3/repos/acme/docs/tarball/")) return undefined
    const files = markdownOf(world)
    files.set("src/main.c", "int main(void) { return 0; }")
    return {
      headers: { "content-type": "application/x-gzip" },
      body: tarball(`acme-docs-${sha.slice(0, 7)}`, files)
    }
  }
}

const markdownOf = (world: World) =>
  new Map(
    [...world].map(([id, { text, title }]) => [
      `docs/${id}.md`,
      `---\ntitle: "${title}"\n---\n# Heading\n\n${text}\n`
    ])
  )

/** A project of a sub-group. The archive's folder has the commit twice, as with `sha`. */
const gitlabStub: Stub = {
  reader: () => repository,
  settings: (origin) => ({
    url: `${origin}/acme/products/docs`,
    provider: "gitlab",
    token: "glpat-secret",
    branch: "release/1.0"
  }),
  requests: 2,
  token: { header: "private-token", value: "glpat-secret" },
  respond: (world, { path }) => {
    const sha = shaOf(world)
    const api = "/api/v4/projects/acme%2Fproducts%2Fdocs/repository"
    if (path === `${api}/commits/release%2F1.0`) {
      return json({ id: sha, short_id: sha.slice(0, 8), title: "Change", parent_ids: [], trailers: {} })
    }
    if (!path.startsWith(`${api}/archive.tar.gz?sha=`)) return undefined
    return {
      headers: { "content-type": "application/octet-stream" },
      body: tarball(`docs-${sha}-${sha}`, markdownOf(world))
    }
  }
}

/** The archive's folder has the repository's name. */
const giteaStub: Stub = {
  reader: () => repository,
  settings: (origin) => ({ url: `${origin}/acme/docs.git`, provider: "gitea", token: "gta-secret" }),
  requests: 2,
  token: { header: "authorization", value: "token gta-secret" },
  respond: (world, { path }) => {
    const sha = shaOf(world)
    if (path === "/api/v1/repos/acme/docs/commits?limit=1&stat=false") {
      return json([{ url: "", sha, created: timeOf(1), commit: { message: "Change" }, parents: [] }])
    }
    if (!/^\/api\/v1\/repos\/acme\/docs\/archive\/[0-9a-f]{40}\.tar\.gz$/u.test(path)) return undefined
    return {
      headers: { "content-type": "application/octet-stream" },
      body: tarball("docs", markdownOf(world))
    }
  }
}

const zendeskStub: Stub = {
  reader: () => zendesk,
  settings: (origin) => ({ url: origin, locale: "en-us", email: "agent@example.com", token: "zen" }),
  requests: 3,
  token: {
    header: "authorization",
    value: `Basic ${Buffer.from("agent@example.com/token:zen").toString("base64")}`
  },
  respond: (world, { path }, origin) => {
    if (!path.startsWith("/api/v2/help_center/en-us/articles.json?")) return undefined
    const { entries, next } = pageOf(world, parameter(path, "page[after]"), pageSize)
    return json({
      articles: entries.map(([id, { revision, text, title }], index) => ({
        id: index + 1,
        html_url: `${origin}/hc/en-us/articles/${id}`,
        title,
        body: `<p>${text}</p>`,
        draft: false,
        locale: "en-us",
        updated_at: timeOf(revision),
        user_segment_id: null
      })),
      meta: { has_more: next !== null, after_cursor: next, before_cursor: null },
      links: { next: null, prev: null }
    })
  }
}

const run = (text: string) => ({
  type: "text",
  plain_text: text,
  href: null,
  annotations: { bold: false, italic: false, code: false }
})

const notionStub: Stub = {
  reader: (origin) => notion(origin),
  settings: () => ({ token: "ntn" }),
  requests: 8,
  token: { header: "authorization", value: "Bearer ntn" },
  respond: (world, { body, method, path }) => {
    if (method === "POST" && path === "/v1/search") {
      const { start_cursor = "" }: { readonly start_cursor?: string } = JSON.parse(body)
      const { entries, next } = pageOf(world, start_cursor, pageSize)
      return json({
        object: "list",
        results: entries.map(([id, { revision, title }]) => ({
          object: "page",
          id,
          url: `https://www.notion.so/${id}`,
          last_edited_time: timeOf(revision),
          archived: false,
          in_trash: false,
          properties: { Name: { id: "title", type: "title", title: [run(title)] } }
        })),
        has_more: next !== null,
        next_cursor: next
      })
    }
    const id = /^\/v1\/blocks\/([^/?]+)\/children/u.exec(path)?.[1]
    const held = id === undefined ? undefined : world.get(id)
    if (held === undefined) {
      return { ...json({ object: "error", status: 404, code: "object_not_found" }), status: 404 }
    }
    return json({
      object: "list",
      results: [
        {
          object: "block",
          id: `b-${id}`,
          type: "paragraph",
          has_children: false,
          paragraph: { rich_text: [run(held.text)] }
        }
      ],
      has_more: false,
      next_cursor: null
    })
  }
}

const confluenceStub: Stub = {
  reader: () => confluence,
  settings: (origin) => ({ url: origin, space: "DOCS", email: "reader@example.com", token: "atl" }),
  requests: 4,
  token: {
    header: "authorization",
    value: `Basic ${Buffer.from("reader@example.com:atl").toString("base64")}`
  },
  respond: (world, { path }) => {
    if (path.startsWith("/wiki/api/v2/spaces?keys=DOCS")) {
      return json({ results: [{ id: "77", key: "DOCS", name: "Docs", type: "global" }], _links: {} })
    }
    if (!path.startsWith("/wiki/api/v2/spaces/77/pages?")) return undefined
    const { entries, next } = pageOf(world, parameter(path, "cursor"), pageSize)
    return json({
      results: entries.map(([id, { revision, text, title }]) => ({
        id,
        status: "current",
        title,
        spaceId: "77",
        version: { number: revision },
        body: { storage: { representation: "storage", value: `<p>${text}</p>` } },
        _links: { webui: `/spaces/DOCS/pages/${id}` }
      })),
      _links:
        next === null
          ? {}
          : { next: `/wiki/api/v2/spaces/77/pages?limit=50&cursor=${encodeURIComponent(next)}` }
    })
  }
}

/** By the reader's name. */
export const stubs: Readonly<Record<string, Stub>> = {
  feed: feedStub,
  git: gitStub,
  zendesk: zendeskStub,
  notion: notionStub,
  confluence: confluenceStub
}

/** Other kinds of servers of the same readers. */
export const variants: Readonly<Record<string, Stub>> = {
  "git of GitLab": gitlabStub,
  "git of Gitea": giteaStub
}
