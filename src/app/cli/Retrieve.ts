/** `spoke retrieve "…"`: the chunks that match, best first. */
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Arguments from "./Arguments.ts"
import * as Connection from "./Connection.ts"
import * as Output from "./Output.ts"

const Result = Schema.Struct({
  chunks: Schema.Array(
    Schema.Struct({
      id: Schema.String,
      sourceName: Schema.String,
      text: Schema.String,
      score: Schema.Number,
      url: Schema.String
    })
  )
})

const excerpt = (text: string): string => {
  const line = text.replaceAll(/\s+/gu, " ").trim()
  return line.length > 240 ? `${line.slice(0, 239)}…` : line
}

interface Flags extends Connection.Flags {
  readonly topK: number
  readonly minScore: number
  readonly source: ReadonlyArray<string>
  readonly json?: true | undefined
}

const search = (query: string, { json, minScore, source, topK, ...flags }: Flags) =>
  Effect.gen(function* () {
    const { call } = yield* Connection.connect(flags)
    const request = HttpClientRequest.post("/retrieve").pipe(
      HttpClientRequest.bodyUnsafeJson({
        query,
        topK,
        minScore,
        ...(source.length > 0 && { filter: { sourceIds: source } })
      })
    )
    const found = yield* call(Result, request)
    if (json === true) return yield* Output.asJson(found)
    if (found.chunks.length === 0) {
      return yield* Output.note("Nothing was found. spoke ingest adds a source.")
    }
    for (const { score, sourceName, text, url } of found.chunks) {
      yield* Output.line(`${score.toFixed(3)}  ${sourceName}  ${url}\n       ${excerpt(text)}\n`)
    }
  })

export const retrieve = (run: Arguments.Run) =>
  Arguments.command(
    "retrieve",
    "Search the agent's sources without generating a reply.",
    'spoke retrieve "turns run one at a time" --top-k 2',
    'spoke retrieve "refund" --source src_… --min-score 0.3 --json'
  )
    .argument("<query>", "what to look for")
    .option("--top-k <count>", "how many chunks, 1 to 20", Arguments.wholeNumber(1, 20), 5)
    .option("--min-score <score>", "minimum score, 0 to 1", Arguments.share, 0)
    .option("--source <id>", "a source to search; may be repeated, all by default", Arguments.repeated, [])
    .addOption(Arguments.json)
    .addOption(Arguments.url)
    .addOption(Arguments.key)
    .addOption(Arguments.keyFile)
    .action((query, flags) => run(search(query, flags)))
