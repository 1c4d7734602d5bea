/** `spoke chat "…"`: one turn, printed as it streams. */
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Arguments from "./Arguments.ts"
import * as Connection from "./Connection.ts"
import * as Output from "./Output.ts"
import { noteIfInterrupted } from "./Signals.ts"

const Frame = Schema.parseJson(
  Schema.Union(
    Schema.Struct({ type: Schema.Literal("text-delta"), delta: Schema.String }),
    Schema.Struct({ type: Schema.Literal("error"), errorText: Schema.String }),
    Schema.Struct({
      type: Schema.Literal("data-done"),
      data: Schema.Struct({
        result: Schema.Struct({
          conversationId: Schema.optional(Schema.String),
          citations: Schema.Array(
            Schema.Struct({ index: Schema.Number, title: Schema.String, url: Schema.String })
          )
        })
      })
    }),
    Schema.Struct({ type: Schema.String })
  )
)
type Frame = typeof Frame.Type

const show = (frame: Frame) => {
  if ("delta" in frame) return Output.write(frame.delta)
  if ("errorText" in frame)
    return new Connection.CommandFailed({ message: Connection.errorText(frame.errorText) })
  if (!("data" in frame)) return Effect.void
  const { citations, conversationId } = frame.data.result
  const lines = citations.map(({ index, title, url }) => `  [${index}] ${title}  ${url}`)
  const next = conversationId === undefined ? [] : [`\nContinue with --conversation ${conversationId}`]
  return Effect.zipRight(Output.write("\n"), Output.note(["", ...lines, ...next].join("\n")))
}

const post = (path: string, body: unknown) =>
  HttpClientRequest.post(path).pipe(HttpClientRequest.bodyUnsafeJson(body))

const runHint = (runId: string | undefined) =>
  runId === undefined ? "" : ` Its run is ${runId}: GET /v1/agent-runs/${runId} shows how it ended.`

interface Flags extends Connection.Flags {
  readonly conversation?: string | undefined
  readonly json?: true | undefined
}

const ask = (message: string, { conversation, json, ...flags }: Flags) =>
  Effect.gen(function* () {
    const { call, send } = yield* Connection.connect(flags)
    const body = { message, ...(conversation === undefined ? {} : { conversationId: conversation }) }
    if (json === true)
      return yield* Output.asJson(yield* call(Schema.Unknown, post("/chat", body), Connection.turnTimeout))
    const response = yield* send(post("/chat/stream", body), Connection.turnTimeout)
    const run = runHint(response.headers["x-run-id"])
    const done = yield* response.stream.pipe(
      Stream.decodeText(),
      Stream.splitLines,
      Stream.filter((line) => line.startsWith("data: {")),
      Stream.mapEffect((line) => Schema.decode(Frame)(line.slice("data: ".length))),
      Stream.tap(show),
      Stream.runFold(false, (ended, { type }) => ended || type === "data-done"),
      Effect.catchTags({
        ParseError: () => new Connection.CommandFailed({ message: "The stream has an unexpected form." }),
        ResponseError: () => Effect.succeed(false)
      }),
      Effect.onInterrupt(() => noteIfInterrupted(`The turn is answered and stored nevertheless.${run}`))
    )
    if (!done) {
      return yield* new Connection.CommandFailed({
        message: `The stream ended before the turn was settled. Look at its trace before you repeat it.${run}`
      })
    }
  })

export const chat = (run: Arguments.Run) =>
  Arguments.command(
    "chat",
    "Ask the agent and watch the reply arrive. The reply goes to standard output, its citations and hints to standard error.",
    'spoke chat "How do I add a source?"',
    'spoke chat "And how do I remove it?" --conversation cnv_…',
    'spoke chat "How do I add a source?" --json | jq .citations'
  )
    .argument("<message>", "what to ask the agent")
    .option("--conversation <id>", "conversation to continue")
    .addOption(Arguments.json)
    .addOption(Arguments.url)
    .addOption(Arguments.key)
    .addOption(Arguments.keyFile)
    .action((message, flags) => run(ask(message, flags)))
