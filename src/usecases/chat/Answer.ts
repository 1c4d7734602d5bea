/** What the model makes of a turn: searched, asked, cited. A turn that is stopped keeps what was said until then. */
import * as Effect from "effect/Effect"
import type { Context } from "effect"
import type { Embedder } from "../../capabilities/Embedder.ts"
import type { ModelRuntime } from "../../capabilities/ModelRuntime.ts"
import type { CallingTurn } from "../../capabilities/ToolSource.ts"
import type { FoundChunk, VectorSearch } from "../../capabilities/VectorSearch.ts"
import type { Citation } from "../../domain/ChatTurn.ts"
import * as Traced from "../../domain/Traced.ts"
import type { HistoryMessage } from "../../store/Turns.ts"
import * as Citations from "./Citations.ts"
import * as Curated from "./Curated.ts"
import { sentenceFor } from "./Farewell.ts"
import * as HandoffTool from "./HandoffTool.ts"
import * as ModelStep from "./ModelStep.ts"
import * as Prompt from "./Prompt.ts"
import { searchText } from "./Question.ts"
import type { ChatTools, TurnTools } from "./Tools.ts"
import * as ToolSteps from "./ToolSteps.ts"
import { noFiles } from "./Extras.ts"
import { emit, record, say, type Turn } from "./Turn.ts"
import { unlessCancelled } from "./TurnCancellation.ts"

export interface Answer {
  readonly reply: string
  readonly citations: ReadonlyArray<Citation>
  /** 0 for a reply that was cut short: the provider did not say. */
  readonly inputTokens: number
  readonly outputTokens: number
  /** Label of the run's last event. */
  readonly label: "Run completed" | "Stopped"
}

/** What answering needs of the outside. */
export interface Means {
  readonly search: Context.Tag.Service<typeof VectorSearch>
  readonly embedder: Context.Tag.Service<typeof Embedder>
  readonly runtime: Context.Tag.Service<typeof ModelRuntime>
  readonly tools: ChatTools
}

const find = Traced.fn("Answer.find")(function* (
  { embedder, runtime, search }: Means,
  turn: Turn,
  history: ReadonlyArray<HistoryMessage>
) {
  const { admission, request, scope } = turn
  const query = searchText(request.message, history)
  const searching = search.search(scope, {
    text: query,
    topK: admission.topK,
    minScore: admission.minScore ?? runtime.minScore ?? embedder.minScore,
    filter: request.filter
  })
  const [found, curated] = admission.hasCurated
    ? yield* Effect.all([searching, Curated.find(search, scope, request.message, request.filter)], {
        concurrency: 2
      })
    : [yield* searching, null]
  const chunks = Curated.before(curated, found.chunks, admission.topK)
  yield* record(turn, "retrieval.completed", "complete", "Knowledge base searched", {
    query,
    degraded: found.degraded,
    ...(curated === null ? {} : { curated: { question: curated.question, likeness: curated.likeness } }),
    chunks: chunks.map(({ id, sourceId, title, score }) => ({ id, sourceId, title, score }))
  })
  return { chunks, curated }
})

/** What was found for a turn, what somebody wrote beforehand first. */
interface Findings {
  readonly chunks: ReadonlyArray<FoundChunk>
  readonly curated: Curated.CuratedAnswer | null
}

/** The model's reply, or as much of it as there was when the turn was stopped. */
const write = Traced.fn("Answer.write")(function* (
  { runtime }: Means,
  turn: Turn,
  history: ReadonlyArray<HistoryMessage>,
  { chunks, curated }: Findings,
  telling: Citations.Telling,
  tools: TurnTools
) {
  const { admission, request } = turn
  const passages = Citations.toPassages(chunks, curated?.chunks.length ?? 0)
  const files =
    turn.files === noFiles
      ? []
      : yield* unlessCancelled(turn.cancellation, turn.files.load, Effect.suspend(ModelStep.turnFailed))
  turn.counted = true
  let said = ""
  const step = ToolSteps.run(
    runtime,
    turn,
    tools,
    {
      model: admission.model,
      prompt: Prompt.render({
        instructions: admission.instructions,
        passages,
        context: request.context,
        history,
        message: request.message,
        files,
        contextWindow: runtime.contextWindow
      }),
      tools: tools.declarations,
      question: request.message,
      passages
    },
    (delta) => {
      said += delta
      return say(turn, telling.say(delta))
    }
  )
  const cutShort = Effect.suspend(() =>
    said === ""
      ? ModelStep.turnFailed()
      : Effect.succeed({ text: said, inputTokens: 0, outputTokens: 0, reason: "stopped" as const })
  )
  return yield* unlessCancelled(turn.cancellation, step, cutShort)
}, Effect.scoped)

/** Whoever is handed to a human is told so, if the model did not. */
const withFarewell = (turn: Turn, text: string) => {
  if (turn.handoff === null || text.trim() !== "") return Effect.succeed(text)
  const delta = sentenceFor(turn.request.message)
  return Effect.as(emit(turn, { _tag: "TextDelta", delta }), delta)
}

/** The wish for a human stands, whatever became of the model afterwards. */
export const farewell = Traced.fn("Answer.farewell")(function* (turn: Turn) {
  const answered: Answer = {
    reply: yield* withFarewell(turn, ""),
    citations: [],
    inputTokens: 0,
    outputTokens: 0,
    label: "Stopped"
  }
  return answered
})

const callingTurn = ({ admission, conversationId, opening, scope }: Turn): CallingTurn => ({
  scope,
  runId: opening.runId,
  conversationId,
  endUserId: admission.endUserId
})

/** Fails when the model does, and when the turn is stopped before anything was said. */
export const run = Traced.fn("Answer.run")(function* (
  means: Means,
  turn: Turn,
  history: ReadonlyArray<HistoryMessage>
) {
  const finding = find(means, turn, history)
  const gathering = means.tools.forTurn(turn.scope, turn.request, turn.admission, callingTurn(turn))
  const preparing = turn.admission.hasTools
    ? Effect.all([finding, gathering], { concurrency: 2 })
    : Effect.zip(finding, gathering)
  const [findings, given] = yield* unlessCancelled(
    turn.cancellation,
    preparing,
    Effect.suspend(ModelStep.turnFailed)
  )
  const tools = HandoffTool.added(turn, given)
  yield* emit(turn, { _tag: "StepStart" })
  const candidates = Citations.candidatesOf(findings.chunks)
  const telling = new Citations.Telling(candidates)
  const written = yield* write(means, turn, history, findings, telling, tools)
  const { inputTokens, outputTokens, reason } = written
  const text = yield* withFarewell(turn, written.text)
  yield* record(turn, "model.completed", "complete", "Model replied", {
    model: turn.admission.model ?? means.runtime.defaultModel,
    reason,
    inputTokens,
    outputTokens
  })
  const citations = Citations.citationsOf(text, candidates, means.runtime)
  yield* Effect.forEach(telling.rest(citations), (part) => emit(turn, part), { discard: true })
  yield* emit(turn, { _tag: "StepEnd" })
  const label = reason === "stopped" ? "Stopped" : "Run completed"
  const answered: Answer = { reply: text, citations, inputTokens, outputTokens, label }
  return answered
})
