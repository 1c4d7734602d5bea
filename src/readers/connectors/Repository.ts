/** Reader `git`: the Markdown files of a repository on GitHub, GitLab or Gitea, from the archive of one commit. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import { Gunzip } from "fflate"
import type { OutboundHttp } from "../../capabilities/OutboundHttp.ts"
import { ReaderError, setting, sourceReader, permanentError } from "../../capabilities/SourceReaders.ts"
import { WorkBudget } from "../../concurrency/WorkBudget.ts"
import { yieldToEventLoop } from "../../concurrency/YieldToEventLoop.ts"
import { urlOf } from "../../domain/Address.ts"
import { optional } from "../../domain/Optional.ts"
import { HttpUrl } from "../../domain/knowledge/Source.ts"
import { Text, trimmed } from "../../domain/Text.ts"
import { parseMarkdown } from "../../search/MarkdownDocument.ts"
import { compilePattern, matchesPattern } from "../Glob.ts"
import { request, requestJson } from "./Requests.ts"
import { makeTar } from "./Tar.ts"
import { MiB } from "../../domain/Bytes.ts"

/** Limits of one archive. */
const limits = {
  packedBytes: 200 * MiB,
  unpackedBytes: 1024 * MiB,
  fileBytes: 2 * MiB,
  heldBytes: 128 * MiB,
  files: 10_000
} as const
/** Number of files of one step. Each step requests the archive of the same commit. */
const filesPerStep = 1_000
/** Number of compressed bytes at a time. The output is at most a thousand times as large. */
const bytesPerStep = 8 * 1024

const Globs = Schema.Array(Text.pipe(Schema.minLength(1), Schema.maxLength(200))).pipe(Schema.maxItems(20))

const Settings = Schema.Struct({
  url: HttpUrl.annotations(
    setting({
      label: { en: "Address of the repository", de: "Adresse des Repositorys" },
      hint: { en: "https://github.com/owner/name", de: "https://github.com/owner/name" },
      address: true
    })
  ),
  provider: optional(
    Schema.Literal("github", "gitlab", "gitea").annotations(
      setting({
        label: { en: "Kind of server", de: "Art des Servers" },
        hint: {
          en: "Known for github.com, gitlab.com, gitea.com and codeberg.org",
          de: "Bekannt für github.com, gitlab.com, gitea.com und codeberg.org"
        }
      })
    )
  ),
  branch: optional(
    trimmed(200).annotations(
      setting({
        label: { en: "Branch", de: "Branch" },
        hint: { en: "Left empty: the repository's own", de: "Leer: der des Repositorys" }
      })
    )
  ),
  include: optional(
    Globs.annotations(
      setting({
        label: { en: "Files to read", de: "Zu lesende Dateien" },
        hint: {
          en: "Patterns of paths such as docs/*.md; * stands for any characters. Left empty: all Markdown.",
          de: "Muster von Pfaden wie docs/*.md; * steht für beliebige Zeichen. Leer: alles Markdown."
        }
      })
    )
  ),
  exclude: optional(
    Globs.annotations(setting({ label: { en: "Files to leave out", de: "Auszulassende Dateien" } }))
  ),
  token: optional(
    trimmed(1_000).annotations(
      setting({
        label: { en: "Access token", de: "Zugriffstoken" },
        hint: { en: "For private repositories", de: "Für private Repositorys" },
        secret: true
      })
    )
  )
})
type Settings = typeof Settings.Type

const Cursor = Schema.Struct({ commit: Schema.String })
const Position = Schema.Struct({ commit: Schema.String, after: Schema.String })

type Provider = "github" | "gitlab" | "gitea"
const providers: Readonly<Record<string, Provider>> = {
  "github.com": "github",
  "gitlab.com": "gitlab",
  "gitea.com": "gitea",
  "codeberg.org": "gitea"
}

const notARepository = permanentError(
  "no_repository",
  "The address does not name a repository: expected https://host/owner/name."
)
const unknownServer = permanentError(
  "unknown_provider",
  "It is not known what kind of server this is: choose github, gitlab or gitea."
)
const damaged = permanentError("malformed", "The archive of the repository is damaged.")
const tooLarge = permanentError(
  "too_large",
  `The repository unpacks to more than ${limits.unpackedBytes / MiB} MiB, or has too many Markdown files. Use include and exclude.`
)

/** The requests of a kind of server. */
interface Server {
  /** The newest commit of the branch, or of the default branch. */
  readonly commit: Effect.Effect<string, ReaderError, OutboundHttp>
  readonly archive: (commit: string) => string
  readonly page: (path: string) => string
  readonly headers: Readonly<Record<string, string>>
}

const Sha = Schema.String.pipe(Schema.pattern(/^[0-9a-f]{7,64}$/u))

const encoded = (path: string): string => path.split("/").map(encodeURIComponent).join("/")

/** Null where a percent sign encodes nothing. */
const decoded = (path: string): string | null => Either.getOrNull(Either.try(() => decodeURIComponent(path)))

const service = "The repository's server"

const Commit = Schema.Struct({ sha: Sha })

const serverOf = (settings: Settings): Effect.Effect<Server, ReaderError> => {
  const { branch, token } = settings
  const { hostname, origin, pathname } = new URL(settings.url)
  // GitLab separates a project from its pages by `/-/`.
  const [project = ""] = pathname.split("/-/")
  const path = project
    .split("/")
    .filter((part) => part !== "")
    .join("/")
    .replace(/\.git$/u, "")
  const provider = settings.provider ?? providers[hostname]
  const name = decoded(path)
  if (name === null || name.split("/").length < 2) return notARepository
  if (provider === undefined) return unknownServer
  const repo = `${origin}/${path}`
  const ref = branch ?? "HEAD"
  switch (provider) {
    case "github": {
      const api = `${hostname === "github.com" ? "https://api.github.com" : `${origin}/api/v3`}/repos/${path}`
      const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
      const url = `${api}/commits/${encodeURIComponent(ref)}`
      return Effect.succeed({
        headers,
        commit: Effect.map(requestJson({ service, url, headers }, Commit), ({ sha }) => sha),
        archive: (commit) => `${api}/tarball/${commit}`,
        page: (file) => `${repo}/blob/${encoded(ref)}/${encoded(file)}`
      })
    }
    case "gitlab": {
      const api = `${origin}/api/v4/projects/${encodeURIComponent(name)}/repository`
      const headers = token === undefined ? {} : { "private-token": token }
      const url = `${api}/commits/${encodeURIComponent(ref)}`
      return Effect.succeed({
        headers,
        commit: Effect.map(
          requestJson({ service, url, headers }, Schema.Struct({ id: Sha })),
          ({ id }) => id
        ),
        archive: (commit) => `${api}/archive.tar.gz?sha=${commit}`,
        page: (file) => `${repo}/-/blob/${encoded(ref)}/${encoded(file)}`
      })
    }
    case "gitea": {
      const api = `${origin}/api/v1/repos/${path}`
      const headers = token === undefined ? {} : { authorization: `token ${token}` }
      const of = branch === undefined ? "" : `&sha=${encodeURIComponent(branch)}`
      const url = `${api}/commits?limit=1&stat=false${of}`
      return Effect.succeed({
        headers,
        commit: Effect.map(
          requestJson({ service, url, headers }, Schema.NonEmptyArray(Commit)),
          ([{ sha }]) => sha
        ),
        archive: (commit) => `${api}/archive/${commit}.tar.gz`,
        page: (file) =>
          `${repo}/src/${branch === undefined ? ref : `branch/${encoded(branch)}`}/${encoded(file)}`
      })
    }
  }
}

const markdown = /\.(?:md|mdx|markdown)$/iu

const selectorOf = ({ exclude = [], include = [] }: Settings) => {
  const budget = new WorkBudget()
  const [included, excluded] = [include, exclude].map((globs) =>
    globs.map((glob) => compilePattern(glob, "?"))
  )
  const isIn = (globs: typeof included, path: string) =>
    globs?.some((glob) => matchesPattern(glob, path, budget)) === true
  return (path: string) =>
    markdown.test(path) && (include.length === 0 || isIn(included, path)) && !isIn(excluded, path)
}

/** The Markdown files of the archive by path, without the top-level folder. */
const filesOf = (archive: Uint8Array, selected: (path: string) => boolean) =>
  Effect.gen(function* () {
    const files = new Map<string, string>()
    let [unpacked, held] = [0, 0]
    let isTar = true
    const pathOf = (name: string) => name.replace(/^\.\//u, "").replace(/^[^/]*\//u, "")
    const push = makeTar({
      wants: (name, size) => {
        if (size > limits.fileBytes || !selected(pathOf(name))) return false
        held += size
        return held <= limits.heldBytes
      },
      file: (name, bytes) => files.set(pathOf(name), new TextDecoder().decode(bytes))
    })
    const stream = new Gunzip((piece) => {
      unpacked += piece.length
      if (unpacked <= limits.unpackedBytes && isTar) isTar = push(piece)
    })
    for (let at = 0; at < archive.length; at += bytesPerStep) {
      yield* Effect.try({
        try: () => stream.push(archive.subarray(at, at + bytesPerStep), at + bytesPerStep >= archive.length),
        catch: () => damaged
      })
      if (!isTar) return yield* damaged
      if (unpacked > limits.unpackedBytes || held > limits.heldBytes || files.size > limits.files) {
        return yield* tooLarge
      }
      yield* yieldToEventLoop
    }
    return files
  })

export const repository = sourceReader({
  name: "git",
  title: { en: "Git repository", de: "Git-Repository" },
  description: {
    en: "The Markdown files of a branch on GitHub, GitLab or Gitea.",
    de: "Die Markdown-Dateien eines Branches auf GitHub, GitLab oder Gitea."
  },
  settings: Settings,
  cursor: Cursor,
  limitsDocuments: false,
  position: Position,
  defaults: ({ url }) => {
    const provider = providers[urlOf(String(url))?.hostname ?? ""]
    return { include: [], exclude: [], ...(provider === undefined ? {} : { provider }) }
  },
  step: (settings, { cursor, position }) =>
    Effect.gen(function* () {
      const server = yield* serverOf(settings)
      const commit = position?.commit ?? (yield* server.commit)
      if (cursor?.commit === commit) return { documents: [], next: { done: cursor, complete: false } }
      const archive = yield* request({
        service,
        url: server.archive(commit),
        headers: server.headers,
        maxBytes: limits.packedBytes
      })
      const files = yield* filesOf(archive.body, selectorOf(settings))
      const after = position?.after
      const remaining = [...files.keys()].toSorted().filter((path) => after === undefined || path > after)
      const now = remaining.slice(0, filesPerStep)
      const documents = now.flatMap((path) => {
        const { text, title } = parseMarkdown(files.get(path) ?? "")
        const uri = server.page(path)
        const document = {
          uri,
          title: title || (path.split("/").at(-1) ?? path),
          format: "markdown" as const,
          content: text
        }
        return text.trim() === "" ? [] : [document]
      })
      const end = now.at(-1)
      return {
        documents,
        next:
          remaining.length > now.length && end !== undefined
            ? { more: { commit, after: end } }
            : { done: { commit }, complete: true }
      }
    })
})
