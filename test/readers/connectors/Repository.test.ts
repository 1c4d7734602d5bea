/** The Git reader at the servers of GitHub, GitLab and Gitea: addresses, redirects, and limits. */
import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { repository } from "../../../src/readers/connectors/Repository.ts"
import { layerReaders } from "../Site.ts"
import { type Answer, type Asked, json, serveStub, tarball } from "./StubService.ts"

const sha = "0123456789abcdef0123456789abcdef01234567"
const archive: Answer = {
  headers: { "content-type": "application/octet-stream" },
  body: tarball(`docs-${sha}`, new Map([["guide/Über uns.md", "# About\n\nText."]]))
}

const start = { cursor: null, position: null, known: () => undefined }
const read = (settings: Readonly<Record<string, unknown>>) => repository.step(settings, start)

/** A service whose commits and archive are at these addresses. */
const served = (commits: string, found: unknown, tar: string, answer: Answer = archive) =>
  serveStub((_, { path }) => {
    if (path === commits) return json(found)
    return path === tar ? answer : undefined
  })

const api = { gitlab: "/api/v4/projects", gitea: "/api/v1/repos", github: "/api/v3/repos" }

it.scopedLive("addresses name the project in sub-groups, with .git or a page behind it", () =>
  Effect.gen(function* () {
    const project = `${api.gitlab}/acme%2Fa%2Fb%2Fdocs/repository`
    const { origin } = yield* served(
      `${project}/commits/HEAD`,
      { id: sha },
      `${project}/archive.tar.gz?sha=${sha}`
    )
    for (const end of ["", "/", ".git", "/-/tree/main/guide", "/-/blob/main/README.md"]) {
      const { documents } = yield* read({ url: `${origin}/acme/a/b/docs${end}`, provider: "gitlab" })
      expect([end, documents.map(({ title, uri }) => [title, uri])]).toEqual([
        end,
        [["About", `${origin}/acme/a/b/docs/-/blob/HEAD/guide/%C3%9Cber%20uns.md`]]
      ])
    }
  }).pipe(Effect.provide(layerReaders))
)

it.scopedLive("titles and texts of files are those of uploaded Markdown", () =>
  Effect.gen(function* () {
    const files = [
      ["a.md", "---\ntitle: What's new\n---\nText.", "What's new", "Text."],
      [
        "b.md",
        "---\n\nImportant: closed.\n\n---\n\nText.",
        "b.md",
        "---\n\nImportant: closed.\n\n---\n\nText."
      ],
      [
        "c.md",
        "```sh\n# a comment\n```\n\n# Setup\n\nText.",
        "Setup",
        "```sh\n# a comment\n```\n\n# Setup\n\nText."
      ],
      ["d.md", '+++\ntitle = "Hours"\nweight = 1\n+++\nText.', "Hours", "Text."]
    ] as const
    const body = tarball(`docs-${sha}`, new Map(files.map(([path, text]) => [path, text])))
    const repo = `${api.gitea}/acme/docs`
    const commits = `${repo}/commits?limit=1&stat=false`
    const { origin } = yield* served(commits, [{ sha }], `${repo}/archive/${sha}.tar.gz`, {
      ...archive,
      body
    })
    const { documents } = yield* read({ url: `${origin}/acme/docs`, provider: "gitea" })
    expect(documents.map(({ content, title }) => [title, content])).toEqual(
      files.map(([, , title, content]) => [title, content])
    )
  }).pipe(Effect.provide(layerReaders))
)

it.scopedLive("pages of Gitea name the branch", () =>
  Effect.gen(function* () {
    const repo = `${api.gitea}/acme/docs`
    const commits = `${repo}/commits?limit=1&stat=false&sha=release%2F1.0`
    const { origin } = yield* served(commits, [{ sha }], `${repo}/archive/${sha}.tar.gz`)
    const { documents } = yield* read({
      url: `${origin}/acme/docs`,
      provider: "gitea",
      branch: "release/1.0"
    })
    expect(documents.map(({ uri }) => uri)).toEqual([
      `${origin}/acme/docs/src/branch/release/1.0/guide/%C3%9Cber%20uns.md`
    ])
  }).pipe(Effect.provide(layerReaders))
)

it.scopedLive("an address that encodes nothing is refused with a reason", () =>
  Effect.gen(function* () {
    const refused = yield* Effect.flip(read({ url: "https://gitlab.com/acme/do%zzcs" }))
    expect(refused).toMatchObject({ code: "no_repository", retryable: false })
  }).pipe(Effect.provide(layerReaders))
)

const servers = [
  ["gitlab", "private-token", `${api.gitlab}/acme%2Fdocs/repository/archive.tar.gz?sha=${sha}`],
  ["gitea", "authorization", `${api.gitea}/acme/docs/archive/${sha}.tar.gz`],
  ["github", "authorization", `${api.github}/acme/docs/tarball/${sha}`]
] as const

for (const [provider, header, tar] of servers) {
  const isCommits = ({ path }: Asked) => path.includes("/commits")
  const found = provider === "gitea" ? [{ sha }] : { id: sha, sha }
  const settings = (origin: string) => ({ url: `${origin}/acme/docs`, provider, token: "a-token" })

  it.scopedLive(`an archive of ${provider} at another host is fetched without the token`, () =>
    Effect.gen(function* () {
      const store = yield* serveStub(() => archive)
      const { asked, origin } = yield* serveStub((_, one) => {
        if (isCommits(one)) return json(found)
        if (one.path !== tar) return undefined
        return { status: 302, headers: { location: `${store.origin}/archive?signed=1` }, body: "" }
      })
      const { documents } = yield* read(settings(origin))
      expect(documents).toHaveLength(1)
      expect(asked.map(({ headers }) => headers[header])).toEqual([
        expect.stringContaining("a-token"),
        expect.stringContaining("a-token")
      ])
      expect(JSON.stringify(store.asked)).not.toContain("a-token")
    }).pipe(Effect.provide(layerReaders))
  )

  it.scopedLive(`an address of ${provider} that has moved on the same host keeps the token`, () =>
    Effect.gen(function* () {
      const { asked, origin } = yield* serveStub((_, one, self) => {
        if (one.path.startsWith("/moved")) return one.path.includes("tar") ? archive : json(found)
        const kind = isCommits(one) ? "commit" : "tar"
        return { status: 301, headers: { location: `${self}/moved/${kind}` }, body: "" }
      })
      expect((yield* read(settings(origin))).documents).toHaveLength(1)
      expect(asked.filter(({ headers }) => headers[header] === undefined)).toEqual([])
    }).pipe(Effect.provide(layerReaders))
  )

  it.scopedLive(`the limit of ${provider} is waited for, whatever its shape`, () =>
    Effect.gen(function* () {
      const soon = () => String(Math.ceil(Date.now() / 1_000) + 1)
      const shapes: ReadonlyArray<() => Answer> = [
        () => ({ status: 429, headers: { "retry-after": "0" }, body: "{}" }),
        () => ({
          status: 429,
          headers: { "ratelimit-remaining": "0", "ratelimit-reset": soon() },
          body: "{}"
        }),
        () => ({
          status: 403,
          headers: { "x-ratelimit-remaining": "0", "x-ratelimit-reset": soon() },
          body: "{}"
        }),
        () => ({ status: 403, headers: { "retry-after": "0" }, body: "{}" })
      ]
      for (const shape of shapes) {
        let isLimited = true
        const { asked, origin } = yield* serveStub((_, one) => {
          if (isCommits(one)) return json(found)
          if (!isLimited) return archive
          isLimited = false
          return shape()
        })
        expect((yield* read(settings(origin))).documents).toHaveLength(1)
        expect(asked).toHaveLength(3)
      }
    }).pipe(Effect.provide(layerReaders))
  )

  it.scopedLive(`a refusal of ${provider} is not a limit`, () =>
    Effect.gen(function* () {
      const { asked, origin } = yield* serveStub(() => ({
        status: 403,
        headers: { "x-ratelimit-remaining": "59", "x-ratelimit-reset": "1900000000" },
        body: "{}"
      }))
      expect(yield* Effect.flip(read(settings(origin)))).toMatchObject({
        code: "unauthorized",
        retryable: false
      })
      expect(asked).toHaveLength(1)
    }).pipe(Effect.provide(layerReaders))
  )
}
