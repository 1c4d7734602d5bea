/** `spoke ingest <url|file> …`: adds sources and follows their jobs to the end. */
import * as fs from "node:fs/promises"
import * as path from "node:path"
import * as Args from "@effect/cli/Args"
import * as Command from "@effect/cli/Command"
import * as Options from "@effect/cli/Options"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Connection from "./Connection.ts"

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

const addUrl = (server: Server, url: string, name: string, maxDepth: number) =>
  server.call(
    Created,
    HttpClientRequest.post("/sources").pipe(
      HttpClientRequest.bodyUnsafeJson(
        isSitemap(url)
          ? { type: "SITEMAP", name, config: { sitemapUrl: url } }
          : { type: "URL", name, config: { url, maxDepth } }
      )
    )
  )

const addFile = (server: Server, file: string, name: string) =>
  Effect.gen(function* () {
    const bytes = yield* Effect.tryPromise({
      try: () => fs.readFile(file),
      catch: () => new Connection.CommandFailed({ message: `${file} cannot be read.` })
    })
    const form = new FormData()
    form.append("name", name)
    form.append("file", new Blob([bytes]), path.basename(file))
    const request = HttpClientRequest.post("/sources/upload").pipe(HttpClientRequest.bodyFormData(form))
    return yield* server.call(Created, request)
  })

/** Redraws one line on a terminal; elsewhere a log would only grow. */
const draw = (line: string) =>
  Effect.sync(() => {
    if (process.stderr.isTTY) process.stderr.write(`\r\u001b[2K${line}`)
  })

const bar = (progress: number): string => {
  const filled = Math.round(progress / 5)
  return `[${"#".repeat(filled)}${".".repeat(20 - filled)}] ${String(progress).padStart(3)} %`
}

const follow = (server: Server, name: string, jobId: string) =>
  server.call(Job, HttpClientRequest.get(`/ingestion-jobs/${jobId}`)).pipe(
    Effect.tap(({ progress, status }) => draw(`${bar(progress)} ${status.toLowerCase()} ${name}`)),
    Effect.delay("300 millis"),
    Effect.repeat({ until: ({ status }) => status !== "QUEUED" && status !== "RUNNING" }),
    Effect.tap(draw("")),
    Effect.flatMap(({ chunksCreated, error, status }) =>
      status === "SUCCEEDED"
        ? Console.log(`${name}: ready, ${chunksCreated ?? 0} chunks`)
        : new Connection.CommandFailed({ message: `${name}: ${error ?? status}` })
    )
  )

export const ingest = Command.make(
  "ingest",
  {
    targets: Args.text({ name: "url|file" }).pipe(
      Args.withDescription("Pages, sitemaps or files to read"),
      Args.atLeast(1)
    ),
    depth: Options.integer("depth").pipe(
      Options.withDefault(0),
      Options.withDescription("How many links to follow from a page, 0 to 5")
    ),
    name: Options.text("name").pipe(Options.optional, Options.withDescription("Name of the source")),
    ...Connection.options
  },
  ({ depth, name, targets, ...flags }) =>
    Effect.gen(function* () {
      const server = yield* Connection.connect(flags)
      for (const target of targets) {
        const called = Option.getOrElse(name, () => (isUrl(target) ? target : path.basename(target))).slice(
          0,
          200
        )
        const { ingestionJob } = yield* isUrl(target)
          ? addUrl(server, target, called, depth)
          : addFile(server, target, called)
        yield* follow(server, called, ingestionJob.id)
      }
    })
).pipe(
  Command.withDescription("Add pages, sitemaps or files to the agent's knowledge and wait until they answer")
)
