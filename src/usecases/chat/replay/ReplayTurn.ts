/**
 * Runs one stored turn again with the same code. It receives everything it may use: search, the model, the checker.
 * None of these can write, send or call a tool, so a replay cannot either.
 */
import * as DateTime from "effect/DateTime"
import * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { AgentScope } from "../../../domain/accounts/Access.ts"
import type { Agent } from "../../../domain/agents/Agent.ts"
import type { Bill } from "../../../domain/billing/Cost.ts"
import type { ChatTurnRequest, Citation } from "../../../domain/chat/ChatTurn.ts"
import type { ReplayedRun, TurnOutcome } from "../../../domain/chat/ReplayedRun.ts"
import { RetrieveFilter } from "../../../domain/knowledge/Chunk.ts"
import type { RecordedRun } from "../../../store/chat/RecordedRuns.ts"
import * as Answer from "../Answer.ts"
import type { TurnServices } from "../TurnServices.ts"
import { runtimeTimeout } from "../ModelStep.ts"
import type { Masking } from "../masking/Masking.ts"
import * as StructuredReply from "../StructuredReply.ts"
import * as Trace from "../Trace.ts"
import { newTurnState, type Turn } from "../Turn.ts"
import * as TurnCancellation from "../TurnCancellation.ts"
import { noFiles } from "../TurnOptions.ts"
import * as TurnParts from "../TurnParts.ts"
import * as RecordedTools from "./RecordedTools.ts"

interface EndedReplay {
  readonly outcome: TurnOutcome
  readonly problem: string | null
}

/** The services of a replay: no tools, no channels, no mail, no writes. */
export type ReplayEnvironment = Omit<TurnServices, "tools">

/** The agent that answers the replay. */
export interface ReplayAgent {
  readonly version: number
  readonly settings: Pick<
    Agent,
    "instructions" | "model" | "retrieval" | "grounding" | "style" | "masking" | "tools"
  >
  readonly hasSources: boolean
  readonly hasCurated: boolean
  readonly tools: RecordedTools.OfferedTools
}

const failureOf = ({ events, status }: RecordedRun): string | null => {
  if (status !== "failed") return null
  const payload = events.findLast(({ type }) => type === "run.failed")?.payload
  const decoded = Schema.decodeUnknownOption(Schema.Struct({ code: Schema.String }))(payload)
  return Option.match(decoded, { onNone: () => "TURN_FAILED", onSome: ({ code }) => code })
}

/** The outcome of the recorded run. */
const outcomeOf = (run: RecordedRun): TurnOutcome => ({
  reply: run.reply,
  citations: run.citations ?? [],
  failure: failureOf(run),
  inputTokens: run.inputTokens,
  outputTokens: run.outputTokens
})

const Searched = Schema.Struct({ filter: Schema.optionalWith(RetrieveFilter, { exact: true }) })

/** A run to be repeated, or a question with the schema of its reply. Runs are recorded without a schema. */
export type Replayable = RecordedRun & Pick<ChatTurnRequest, "responseSchema">

const requestOf = (run: Replayable): ChatTurnRequest => {
  const payload = run.events.find(({ type }) => type === "retrieval.completed")?.payload
  const searched = Option.getOrElse(Schema.decodeUnknownOption(Searched)(payload), () => ({}))
  const { conversationId, question: message, responseSchema } = run
  const schema = responseSchema === undefined ? {} : { responseSchema }
  return { message, conversationId, persist: true, ...searched, ...schema }
}

/** The turn in its state right after it began. Its parts are not read, and nothing is settled. */
const turnOf = (
  scope: AgentScope,
  run: Replayable,
  agent: ReplayAgent,
  timeout: Duration.Duration,
  bills: Array<Bill>
) =>
  Effect.gen(function* () {
    const { grounding, instructions, masking, model, retrieval, style } = agent.settings
    const parts = yield* TurnParts.make
    yield* parts.shutdown
    const turn: Turn = {
      scope: { ...scope, sourceScope: run.sourceScope },
      request: requestOf(run),
      opening: {
        target: { _tag: "Conversation", id: run.conversationId },
        persist: true,
        channel: run.channel,
        instanceId: "",
        runId: run.id,
        endUserId: run.endUserId,
        conversationId: run.conversationId,
        userMessageId: run.userMessageId,
        message: run.question,
        startedAt: run.startedAt,
        startedLabel: "",
        timeout
      },
      admission: {
        agentVersion: agent.version,
        recorded: null,
        instructions,
        model,
        topK: retrieval.topK,
        minScore: retrieval.minScore,
        groundingMode: grounding.mode,
        unsupported: grounding.unsupported,
        contextTokens: grounding.contextTokens,
        maxSearches: grounding.maxSearches,
        length: style.length,
        tone: style.tone,
        masking,
        streamReasoning: false,
        hasSources: agent.hasSources,
        hasTools: true,
        sourceTools: [],
        hasCurated: agent.hasCurated,
        reserved: true,
        periodStart: DateTime.toDate(run.startedAt),
        credited: false,
        budgeted: false,
        spentBudget: null,
        known: true,
        endUserId: run.endUserId,
        state: "AI_ACTIVE",
        epoch: 0,
        ticket: null,
        clear: true,
        history: run.history
      },
      conversationId: run.conversationId,
      endUserId: run.endUserId,
      files: noFiles,
      trace: Trace.make(run.id),
      parts,
      cancellation: yield* TurnCancellation.make,
      ended: yield* Deferred.make<void>(),
      ...newTurnState(masking),
      bills,
      post: null
    }
    return turn
  })

/** The fields of a citation that are compared. A source that was read again has new ids and the same text. */
const comparable = ({ chunkId: _, documentId: __, score: ___, ...citation }: Citation) =>
  Object.entries(citation).toSorted(([one], [other]) => (one < other ? -1 : 1))

const isEqual = (before: TurnOutcome, after: TurnOutcome): boolean =>
  before.reply === after.reply &&
  (before.failure === null) === (after.failure === null) &&
  JSON.stringify(before.citations.map(comparable)) === JSON.stringify(after.citations.map(comparable))

/** The trace has tool answers without their values. Where data is masked, kinds are compared, and no positions. */
const comparableOutcome = (masking: Masking | null, outcome: TurnOutcome): TurnOutcome =>
  masking === null
    ? outcome
    : {
        ...outcome,
        reply: outcome.reply === null ? null : masking.kindsOnly(outcome.reply),
        citations: outcome.citations.map(({ end: _, start: __, ...citation }) => citation)
      }

const isSame = (masking: Masking | null, before: TurnOutcome, after: TurnOutcome): boolean =>
  isEqual(comparableOutcome(masking, before), comparableOutcome(masking, after))

/** A replay, the message of its failure (null if it has none), and the tokens that models have used for it. */
export interface Replay {
  readonly replayed: ReplayedRun
  readonly problem: string | null
  readonly tokens: { readonly input: number; readonly output: number }
}

const tokensOf = (bills: ReadonlyArray<Bill>): Replay["tokens"] => ({
  input: bills.reduce((sum, { inputTokens }) => sum + inputTokens, 0),
  output: bills.reduce((sum, { outputTokens }) => sum + outputTokens, 0)
})

const diverged = (run: RecordedRun, reason: string, bills: ReadonlyArray<Bill>): Replay => ({
  replayed: { runId: run.id, outcome: "diverged", reason, before: outcomeOf(run), after: null },
  problem: null,
  tokens: tokensOf(bills)
})

/** Fails for a schema without a language model, as a turn does before it begins. */
const requireRunnable = ({ runtime }: ReplayEnvironment, { responseSchema }: Replayable) =>
  responseSchema !== undefined && runtime.readsPassages ? StructuredReply.notConfigured() : Effect.void

/** Runs `run` again, for at most `timeout`. The usage of models is added to `bills`. */
export const replay = Effect.fn("ReplayTurn.replay")(function* (
  environment: ReplayEnvironment,
  scope: AgentScope,
  run: Replayable,
  agent: ReplayAgent,
  timeout: Duration.Duration,
  bills: Array<Bill>
) {
  if (run.status === "running") return diverged(run, "The run has not ended yet.", bills)
  if (run.hasFiles) return diverged(run, "Files came with the message, and a replay has none.", bills)
  const turn = yield* turnOf(scope, run, agent, timeout, bills)
  const divergence = yield* Deferred.make<never, RecordedTools.Divergence>()
  const tools = RecordedTools.make(run.events, agent.tools, divergence)
  const services: TurnServices = { ...environment, tools: { forTurn: () => Effect.succeed(tools) } }
  const answering = requireRunnable(environment, run).pipe(
    Effect.zipRight(Answer.run(services, turn, run.history)),
    Effect.catchAll((failure) =>
      turn.handoff === null ? Effect.fail(failure) : Answer.addHandoffNotice(turn)
    ),
    Effect.timeoutFail({ duration: timeout, onTimeout: runtimeTimeout }),
    Effect.map(({ citations, inputTokens, outputTokens, reply }): EndedReplay => ({
      outcome: { reply, citations, failure: null, inputTokens, outputTokens },
      problem: null
    })),
    Effect.catchAll(({ _tag, message }) =>
      Effect.sync((): EndedReplay => {
        const { input: inputTokens, output: outputTokens } = tokensOf(bills)
        return {
          outcome: { reply: null, citations: [], failure: _tag, inputTokens, outputTokens },
          problem: message
        }
      })
    )
  )
  const ended = yield* Effect.either(Effect.raceFirst(answering, Deferred.await(divergence)))
  if (Either.isLeft(ended)) return diverged(run, ended.left.reason, bills)
  const before = outcomeOf(run)
  const { outcome: after, problem } = ended.right
  const outcome = isSame(turn.masking, before, after) ? "same" : "changed"
  const replayed = { runId: run.id, outcome, reason: null, before, after } as const
  const replay: Replay = { replayed, problem, tokens: tokensOf(bills) }
  return replay
})
