/** `spoke chat "…"`: one turn, printed as it streams. */
import * as Args from "@effect/cli/Args"
import * as Command from "@effect/cli/Command"
import * as Options from "@effect/cli/Options"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Connection from "./Connection.ts"

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

const write = (text: string) => Effect.sync(() => process.stdout.write(text))

const show = (frame: Frame) => {
  if ("delta" in frame) return write(frame.delta)
  if ("errorText" in frame) return new Connection.CommandFailed({ message: frame.errorText })
  if (!("data" in frame)) return Effect.void
  const { citations, conversationId } = frame.data.result
  const lines = citations.map(({ index, title, url }) => `  [${index}] ${title}  ${url}`)
  const next = conversationId === undefined ? [] : [`\nContinue with --conversation ${conversationId}`]
  return write(`\n\n${[...lines, ...next].join("\n")}\n`)
}

export const chat = Command.make(
  "chat",
  {
    message: Args.text({ name: "message" }).pipe(Args.withDescription("What to ask the agent")),
    conversation: Options.text("conversation").pipe(
      Options.optional,
      Options.withDescription("Id of the conversation to continue")
    ),
    json: Connection.json,
    ...Connection.options
  },
  ({ conversation, json, message, ...flags }) =>
    Effect.gen(function* () {
      const { call, send } = yield* Connection.connect(flags)
      const body = { message, ...(Option.isSome(conversation) ? { conversationId: conversation.value } : {}) }
      if (json) {
        const request = HttpClientRequest.post("/chat").pipe(HttpClientRequest.bodyUnsafeJson(body))
        return yield* Console.log(JSON.stringify(yield* call(Schema.Unknown, request), null, 2))
      }
      const request = HttpClientRequest.post("/chat/stream").pipe(HttpClientRequest.bodyUnsafeJson(body))
      const response = yield* send(request)
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
        })
      )
      if (!done) {
        return yield* new Connection.CommandFailed({
          message: "The stream ended before the turn was settled. Look at its trace before you repeat it."
        })
      }
    })
).pipe(Command.withDescription("Ask the agent and watch the reply arrive, with its citations"))
