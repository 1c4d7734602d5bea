/** `spoke ingest <url|file> …`: adds sources and follows their jobs to the end. */
import * as path from "node:path"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { CreateSource, SourceType } from "../../domain/knowledge/Source.ts"
import { maxUploadBytes } from "../../http/public/knowledge/SourcesApi.ts"
import * as Arguments from "./Arguments.ts"
import * as Connection from "./Connection.ts"
import { readBytes } from "./input/Files.ts"
import * as Output from "./Output.ts"
import { noteIfInterrupted } from "./Signals.ts"

const Created = Schema.Struct({
  source: Schema.Struct({ id: Schema.String }),
  ingestionJob: Schema.Struct({ id: Schema.String })
})

const Job = Schema.Struct({
  status: Schema.String,
  progress: Schema.Number,
  chunksCreated: Schema.NullOr(Schema.Number),
  error: Schema.NullOr(Schema.String)
})

type Server = Effect.Effect.Success<ReturnType<typeof Connection.connect>>

const isUrl = (given: string): boolean => /^https?:\/\//iu.test(given)
const isSitemap = (given: string): boolean => /sitemap[^/]*\.xml(\.gz)?($|\?)/iu.test(given)

/** The command's input, and the server on which it creates sources. */
interface Target {
  readonly server: Server
  readonly target: string
  readonly name: string
  readonly maxDepth: number
}

const create = (server: Server, body: typeof CreateSource.Encoded) =>
  server.call(Created, HttpClientRequest.post("/sources").pipe(HttpClientRequest.bodyUnsafeJson(body)))

const upload = ({ name, server, target: file }: Target) =>
  Effect.gen(function* () {
    const failed = (message: string) => new Connection.CommandFailed({ message })
    const bytes = yield* readBytes(file, maxUploadBytes, failed)
    const form = new FormData()
    form.append("name", name)
    form.append("file", new Blob([bytes]), path.basename(file))
    const request = HttpClientRequest.post("/sources/upload").pipe(HttpClientRequest.bodyFormData(form))
    return yield* server.call(Created, request)
  })

/** How a source of each type is added; null when this command cannot add it. */
const adders = {
  URL: ({ maxDepth, name, server, target: url }: Target) =>
    create(server, { type: "URL", name, config: { url, maxDepth } }),
  SITEMAP: ({ name, server, target }: Target) =>
    create(server, { type: "SITEMAP", name, config: { sitemapUrl: target } }),
  FILE: upload,
  IMAGE: null,
  BULK_UPLOAD: null,
  TEXT: null,
  QA: null,
  CONNECTOR: null
} satisfies Record<SourceType, ((target: Target) => unknown) | null>

const adderOf = (target: string) =>
  !isUrl(target) ? adders.FILE : isSitemap(target) ? adders.SITEMAP : adders.URL

const bar = (progress: number): string => {
  const filled = Math.round(progress / 5)
  return `[${"#".repeat(filled)}${".".repeat(20 - filled)}] ${String(progress).padStart(3)} %`
}

const follow = (server: Server, name: string, jobId: string) =>
  server.call(Job, HttpClientRequest.get(`/ingestion-jobs/${jobId}`)).pipe(
    Connection.whileRestarting,
    Effect.tap(({ progress, status }) => Output.draw(`${bar(progress)} ${status.toLowerCase()} ${name}`)),
    Effect.delay("300 millis"),
    Effect.repeat({ until: ({ status }) => status !== "QUEUED" && status !== "RUNNING" }),
    Effect.tap(Output.draw("")),
    Effect.flatMap(({ chunksCreated, error, status }) =>
      status === "SUCCEEDED"
        ? Output.line(`${name}: ready, ${chunksCreated ?? 0} chunks`)
        : new Connection.CommandFailed({ message: `${name}: ${error ?? status}` })
    )
  )

interface Flags extends Connection.Flags {
  readonly depth: number
  readonly name?: string | undefined
}

const add = (targets: ReadonlyArray<string>, { depth, name, ...flags }: Flags) =>
  Effect.gen(function* () {
    const server = yield* Connection.connect(flags)
    for (const target of targets) {
      const called = (name ?? (isUrl(target) ? target : path.basename(target))).slice(0, 200)
      const adding = adderOf(target)({ server, target, name: called, maxDepth: depth })
      const { ingestionJob, source } = yield* Connection.afterRateLimit(adding)
      yield* Effect.onInterrupt(follow(server, called, ingestionJob.id), () =>
        noteIfInterrupted(
          `The server continues to read ${called}: GET /v1/sources/${source.id} shows the progress.`
        )
      )
    }
  })

export const ingest = (run: Arguments.Run) =>
  Arguments.command(
    "ingest",
    "Add pages, sitemaps or files to the agent's knowledge and wait until they are ready.",
    "spoke ingest https://example.com/docs --depth 2",
    "spoke ingest https://example.com/sitemap.xml",
    'spoke ingest guide.pdf notes.md --name "Manual"'
  )
    .argument("<url|file...>", "pages, sitemaps or files to read")
    .option("--depth <links>", "how many links to follow from a page, 0 to 5", Arguments.wholeNumber(0, 5), 0)
    .option("--name <name>", "name of the source; the address or the file's name by default")
    .addOption(Arguments.url)
    .addOption(Arguments.key)
    .addOption(Arguments.keyFile)
    .action((targets, flags) => run(add(targets, flags)))
