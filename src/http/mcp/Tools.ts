/** What an agent can do for other agents: search its sources, and answer. The same use-cases as `/v1`. */
import { HttpApiDecodeError } from "@effect/platform/HttpApiError"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { type AgentKey, allows, type Requirement } from "../../domain/accounts/Access.ts"
import { redactedForEndUser } from "../../domain/chat/AgentRun.ts"
import { type ChatTurnResult, type Citation, type TurnPart } from "../../domain/chat/ChatTurn.ts"
import { type Chunk, RetrieveRequest } from "../../domain/knowledge/Chunk.ts"
import { type CodedError, Forbidden, InternalError, TurnFailed } from "../../domain/Errors.ts"
import { ConversationId } from "../../domain/Ids.ts"
import { trimmed } from "../../domain/Text.ts"
import { ChatTurn } from "../../usecases/chat/ChatTurn.ts"
import { Retrieve } from "../../usecases/knowledge/Retrieve.ts"
import { isCoded } from "../Envelope.ts"
import * as Issues from "../server/Issues.ts"
import type { Body } from "./Rpc.ts"

type Name = "chat" | "retrieve"

/** Told while a tool is at work. */
export type Progress = (message: string) => Effect.Effect<void>

const text = { type: "string" } as const
const number = { type: "number" } as const

const objectOf = (properties: Body, required: ReadonlyArray<string> = Object.keys(properties)) => ({
  type: "object",
  properties,
  required
})

const inputs: Record<Name, Body> = {
  chat: objectOf(
    {
      message: { ...text, maxLength: 32_000, description: "What to ask, in full sentences." },
      conversationId: { ...text, description: "Continues the conversation of an earlier answer." }
    },
    ["message"]
  ),
  retrieve: objectOf(
    {
      query: { ...text, maxLength: 1_000, description: "What to look for." },
      topK: { type: "integer", minimum: 1, maximum: 20, description: "How many chunks; 5 by default." },
      minScore: { ...number, minimum: 0, maximum: 1, description: "Least score; 0 by default." },
      filter: {
        type: "object",
        description: "Which sources to search; all by default.",
        properties: {
          sourceIds: { type: "array", items: text },
          sourceTypes: { type: "array", items: text },
          metadata: { type: "object" },
          labels: { type: "array", items: text }
        }
      }
    },
    ["query"]
  )
}

const outputs: Record<Name, Body> = {
  chat: objectOf(
    {
      reply: text,
      citations: {
        type: "array",
        items: objectOf({
          index: { type: "integer" },
          sourceId: text,
          sourceName: text,
          documentId: text,
          chunkId: text,
          title: text,
          url: text,
          text,
          score: number
        })
      },
      conversationId: text,
      runId: text
    },
    ["reply", "citations"]
  ),
  retrieve: objectOf({
    chunks: {
      type: "array",
      items: objectOf({ id: text, documentId: text, sourceName: text, text, score: number, url: text })
    }
  })
}

const all: ReadonlyArray<Name> = ["retrieve", "chat"]
const needs: Record<Name, Requirement> = { chat: "chat", retrieve: "retrieve" }

const words: Record<Name, (agent: string) => { readonly title: string; readonly description: string }> = {
  chat: (agent) => ({
    title: `Ask ${agent}`,
    description: `Asks the agent “${agent}”, which answers from its own sources and says which ones.`
  }),
  retrieve: (agent) => ({
    title: `Search ${agent}`,
    description: `Finds passages in the sources of the agent “${agent}”, best first, without generating anything.`
  })
}

/** The tools that `key` may use, described by the name of its agent. Their own names stay when the agent's changes. */
export const list = (key: AgentKey, agent: string): ReadonlyArray<Body> =>
  all
    .filter((name) => allows(key.permissions, needs[name]))
    .map((name) => ({
      name,
      ...words[name](agent),
      inputSchema: inputs[name],
      outputSchema: outputs[name],
      annotations: { readOnlyHint: name === "retrieve", destructiveHint: false }
    }))

export const isName = (name: unknown): name is Name => all.some((one) => one === name)

const said = (words: string, structuredContent: Body): Body => ({
  content: [{ type: "text", text: words }],
  structuredContent
})

const refused = ({ _tag: code, details, message }: CodedError): Body => ({
  content: [
    { type: "text", text: `${code}: ${message}${details === undefined ? "" : ` ${JSON.stringify(details)}`}` }
  ],
  isError: true
})

const cited = (citations: ReadonlyArray<Citation>) =>
  citations.map(({ index, title, url }) => `\n[${index}] ${title} ${url}`).join("")

const passage = ({ score, sourceName, text, url }: Chunk) =>
  `${sourceName} (${score.toFixed(3)}) ${url}\n${text}`

const decoded = <A, I>(schema: Schema.Schema<A, I>, given: unknown) =>
  Effect.catchTag(Schema.decodeUnknown(schema, { errors: "all" })(given), "ParseError", (error) =>
    Effect.flatMap(HttpApiDecodeError.fromParseError(error), (issues) => Effect.fail(Issues.toError(issues)))
  )

const ChatArguments = Schema.Struct({
  message: trimmed(32_000),
  conversationId: Schema.optionalWith(ConversationId, { exact: true })
})

/** Both tools. */
export const make = Effect.gen(function* () {
  const retrieve = yield* Retrieve
  const turns = yield* ChatTurn

  const search = (key: AgentKey, given: unknown) =>
    Effect.gen(function* () {
      const { chunks } = yield* retrieve.run(key, yield* decoded(RetrieveRequest, given))
      return said(chunks.length === 0 ? "Nothing was found." : chunks.map(passage).join("\n\n"), { chunks })
    })

  const ask = (key: AgentKey, given: unknown, progress: Progress) =>
    Effect.gen(function* () {
      const turn = yield* turns.start(key, { ...(yield* decoded(ChatArguments, given)), persist: true })
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
      return said(`${reply}${citations.length === 0 ? "" : `\n${cited(citations)}`}`, {
        reply,
        citations,
        ...(done.conversationId === undefined ? {} : { conversationId: done.conversationId }),
        ...(turn.runId === null ? {} : { runId: turn.runId })
      })
    })

  const broken = (cause: Cause.Cause<unknown>) => {
    const failed = Option.getOrNull(Cause.failureOption(cause))
    if (isCoded(failed)) return Effect.succeed(refused(failed))
    if (Cause.isInterruptedOnly(cause)) return Effect.interrupt
    return Effect.as(
      Effect.logError("A tool failed unexpectedly", cause),
      refused(new InternalError({ message: "Something went wrong on our side." }))
    )
  }

  /** The answer of `name`; a refusal is an answer too, with the documented code. */
  const call = (key: AgentKey, name: Name, given: unknown, progress: Progress): Effect.Effect<Body> => {
    if (!allows(key.permissions, needs[name])) {
      return Effect.succeed(
        refused(new Forbidden({ message: `This key lacks the permission ${needs[name]}.` }))
      )
    }
    return (name === "chat" ? ask(key, given, progress) : search(key, given)).pipe(
      Effect.catchAllCause(broken)
    )
  }

  return { call } as const
})
