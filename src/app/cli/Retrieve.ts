/** `spoke retrieve "…"`: the chunks that match, best first. */
import * as Args from "@effect/cli/Args"
import * as Command from "@effect/cli/Command"
import * as Options from "@effect/cli/Options"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Connection from "./Connection.ts"

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

export const retrieve = Command.make(
  "retrieve",
  {
    query: Args.text({ name: "query" }).pipe(Args.withDescription("What to look for")),
    topK: Options.integer("top-k").pipe(
      Options.withDefault(5),
      Options.withDescription("How many chunks, 1 to 20")
    ),
    minScore: Options.float("min-score").pipe(
      Options.withDefault(0),
      Options.withDescription("Least score, 0 to 1")
    ),
    source: Options.text("source").pipe(
      Options.repeated,
      Options.withDescription("Id of a source to search; may be repeated, all by default")
    ),
    json: Connection.json,
    ...Connection.options
  },
  ({ json, minScore, query, source, topK, ...flags }) =>
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
      if (json) return yield* Console.log(JSON.stringify(found, null, 2))
      if (found.chunks.length === 0) return yield* Console.log("Nothing was found.")
      for (const { score, sourceName, text, url } of found.chunks) {
        yield* Console.log(`${score.toFixed(3)}  ${sourceName}  ${url}\n       ${excerpt(text)}\n`)
      }
    })
).pipe(Command.withDescription("Search the agent's sources without generating a reply"))
