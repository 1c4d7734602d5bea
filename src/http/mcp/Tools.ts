/** The tools of an agent over MCP: search and answer. They use the same use-cases as `/v1`. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as JSONSchema from "effect/JSONSchema"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Json from "../../domain/Json.ts"
import { type AgentKey, allows, type Requirement } from "../../domain/accounts/Access.ts"
import { redactedForEndUser } from "../../domain/chat/AgentRun.ts"
import { ChatTurnResult, type Citation, type TurnPart } from "../../domain/chat/ChatTurn.ts"
import { Chunk, RetrieveRequest } from "../../domain/knowledge/Chunk.ts"
import { type CodedError, Forbidden, TurnFailed, internalError } from "../../domain/Errors.ts"
import { ConversationId, RunId } from "../../domain/Ids.ts"
import { trimmed } from "../../domain/Text.ts"
import { optional } from "../../domain/Optional.ts"
import { ChatTurn } from "../../usecases/chat/ChatTurn.ts"
import { Retrieve } from "../../usecases/knowledge/Retrieve.ts"
import { isCoded } from "../Envelope.ts"
import * as Issues from "../server/Issues.ts"
import type { Body } from "./Rpc.ts"

type Name = "chat" | "retrieve"

/** Reports progress while a tool runs. */
export type Progress = (message: string) => Effect.Effect<void>

const ChatArguments = Schema.Struct({
  message: trimmed(32_000, "The question, in full sentences."),
  conversationId: optional(
    ConversationId.annotations({ description: "Continues the conversation of an earlier answer." })
  )
})

const inputs: Record<Name, Schema.Schema.AnyNoContext> = { chat: ChatArguments, retrieve: RetrieveRequest }

const ChatAnswer = Schema.Struct({
  reply: ChatTurnResult.fields.reply,
  citations: ChatTurnResult.fields.citations,
  conversationId: ChatTurnResult.fields.conversationId,
  runId: optional(RunId)
})

const outputs: Record<Name, Schema.Schema.AnyNoContext> = {
  chat: ChatAnswer,
  retrieve: Schema.Struct({ chunks: Schema.Array(Chunk) })
}

/**
 * The JSON Schema without `$schema`: some validators refuse other dialects, and these schemas are the same in all of
 * them.
 */
const jsonSchemaOf = (schema: Schema.Schema.AnyNoContext): Body => {
  const { $schema: _, ...described } = JSONSchema.make(schema)
  return described
}

const toolNames: ReadonlyArray<Name> = ["retrieve", "chat"]
const requiredPermissions: Record<Name, Requirement> = { chat: "chat", retrieve: "retrieve" }

const toolTexts: Record<Name, (agent: string) => { readonly title: string; readonly description: string }> = {
  chat: (agent) => ({
    title: `Ask ${agent}`,
    description: `Asks the agent “${agent}”, which answers from its own sources and says which ones.`
  }),
  retrieve: (agent) => ({
    title: `Search ${agent}`,
    description: `Finds passages in the sources of the agent “${agent}”, best first, without generating anything.`
  })
}

/**
 * The tools that `key` may use, with the agent's name in their descriptions. Tool names do not depend on the agent's
 * name.
 */
export const list = (key: AgentKey, agent: string): ReadonlyArray<Body> =>
  toolNames
    .filter((name) => allows(key.permissions, requiredPermissions[name]))
    .map((name) => ({
      name,
      ...toolTexts[name](agent),
      inputSchema: jsonSchemaOf(inputs[name]),
      outputSchema: jsonSchemaOf(outputs[name]),
      annotations: { readOnlyHint: name === "retrieve", destructiveHint: false }
    }))

export const isName = (name: unknown): name is Name => toolNames.some((one) => one === name)

const textResult = (text: string, structuredContent: Body): Body => ({
  content: [{ type: "text", text }],
  structuredContent
})

const errorResult = ({ _tag: code, details, message }: CodedError): Body => ({
  content: [
    { type: "text", text: `${code}: ${message}${details === undefined ? "" : ` ${JSON.stringify(details)}`}` }
  ],
  isError: true
})

const citationLines = (citations: ReadonlyArray<Citation>) =>
  citations.map(({ index, title, url }) => `\n[${index}] ${title} ${url}`).join("")

const passageText = ({ score, sourceName, text, url }: Chunk) =>
  `${sourceName} (${score.toFixed(3)}) ${url}\n${text}`

const decodeArguments = <A, I>(schema: Schema.Schema<A, I>, input: unknown) =>
  Effect.catchTag(Json.decodeUnknown(schema)(input), "ParseError", Issues.failWithIssues)

export const make = Effect.gen(function* () {
  const retrieve = yield* Retrieve
  const turns = yield* ChatTurn

  const search = (key: AgentKey, input: unknown) =>
    Effect.gen(function* () {
      const { chunks } = yield* retrieve.run(key, yield* decodeArguments(RetrieveRequest, input))
      return textResult(chunks.length === 0 ? "Nothing was found." : chunks.map(passageText).join("\n\n"), {
        chunks
      })
    })

  const ask = (key: AgentKey, input: unknown, progress: Progress) =>
    Effect.gen(function* () {
      const turn = yield* turns.start(key, {
        ...(yield* decodeArguments(ChatArguments, input)),
        persist: true
      })
      const done = yield* turn.parts.pipe(
        Stream.tap((part) =>
          part._tag === "RunEvent" ? progress(redactedForEndUser(part.event).label) : Effect.void
        ),
        Stream.runFold<ChatTurnResult | null, TurnPart>(null, (found, part) =>
          part._tag === "Done" ? part.result : found
        )
      )
      if (done === null) return yield* new TurnFailed({ message: "The turn failed." })
      const { citations, reply } = done
      return textResult(`${reply}${citations.length === 0 ? "" : `\n${citationLines(citations)}`}`, {
        reply,
        citations,
        ...(done.conversationId === undefined ? {} : { conversationId: done.conversationId }),
        ...(turn.runId === null ? {} : { runId: turn.runId })
      })
    })

  const failureResult = (cause: Cause.Cause<unknown>) => {
    const failed = Option.getOrNull(Cause.failureOption(cause))
    if (isCoded(failed)) return Effect.succeed(errorResult(failed))
    if (Cause.isInterruptedOnly(cause)) return Effect.interrupt
    return Effect.as(Effect.logError("A tool failed unexpectedly", cause), errorResult(internalError()))
  }

  /** Calls the tool `name`. An error is a result too, with its documented code. */
  const call = (key: AgentKey, name: Name, input: unknown, progress: Progress): Effect.Effect<Body> => {
    if (!allows(key.permissions, requiredPermissions[name])) {
      return Effect.succeed(
        errorResult(new Forbidden({ message: `This key lacks the permission ${requiredPermissions[name]}.` }))
      )
    }
    return (name === "chat" ? ask(key, input, progress) : search(key, input)).pipe(
      Effect.catchAllCause(failureResult)
    )
  }

  return { call } as const
})
