/** What the model makes of a turn: searched, asked, cited. A turn that is stopped keeps what was said until then. */
import * as Effect from "effect/Effect"
import type { Context } from "effect"
import type { Embedder } from "../../capabilities/Embedder.ts"
import type { ModelRuntime } from "../../capabilities/ModelRuntime.ts"
import type { VectorSearch } from "../../capabilities/VectorSearch.ts"
import type { Citation } from "../../domain/ChatTurn.ts"
import * as Traced from "../../domain/Traced.ts"
import type { PassageStore } from "../../store/Passages.ts"
import type { HistoryMessage } from "../../store/Turns.ts"
import * as Citations from "./Citations.ts"
import { sentenceFor } from "./Farewell.ts"
import * as HandoffTool from "./HandoffTool.ts"
import * as ModelStep from "./ModelStep.ts"
import * as Passages from "./Passages.ts"
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
  readonly texts: PassageStore
  readonly embedder: Context.Tag.Service<typeof Embedder>
  readonly runtime: Context.Tag.Service<typeof ModelRuntime>
  readonly tools: ChatTools
}

/** Sources take at most this share of what fits the model: the rest is for the conversation and the reply. */
const sourcesShare = 0.25

const find = Traced.fn("Answer.find")(function* (
  { embedder, runtime, search, texts }: Means,
  turn: Turn,
  history: ReadonlyArray<HistoryMessage>
) {
  const { admission, request, scope } = turn
  const query = searchText(request.message, history)
  const { chunks, degraded } = yield* search.search(scope, {
    text: query,
    topK: admission.topK,
    minScore: admission.minScore ?? runtime.minScore ?? embedder.minScore
  })
  yield* record(turn, "retrieval.completed", "complete", "Knowledge base searched", {
    query,
    degraded,
    chunks: chunks.map(({ id, sourceId, title, score }) => ({ id, sourceId, title, score }))
  })
  if (runtime.readsPassages || chunks.length === 0) return Passages.single(chunks)
  const around = yield* texts.around(scope, chunks)
  const budget = Math.min(admission.contextTokens, runtime.contextWindow * sourcesShare)
  return Passages.packed(chunks, around, budget)
})

/** Nothing is said about sources to an agent that has none. */
const groundingOf = ({ admission }: Turn, passages: ReadonlyArray<Passages.Passage>) =>
  admission.hasSources || passages.length > 0 ? admission.groundingMode : null

/** The model's reply, or as much of it as there was when the turn was stopped. */
const write = Traced.fn("Answer.write")(function* (
  { runtime }: Means,
  turn: Turn,
  history: ReadonlyArray<HistoryMessage>,
  passages: ReadonlyArray<Passages.Passage>,
  telling: Citations.Telling,
  tools: TurnTools
) {
  const { admission, request } = turn
  const files =
    turn.files === noFiles
      ? []
      : yield* unlessCancelled(turn.cancellation, turn.files.load, Effect.suspend(ModelStep.turnFailed))
  turn.counted = true
  const step = ToolSteps.run(
    runtime,
    turn,
    tools,
    {
      model: admission.model,
      prompt: Prompt.render({
        instructions: admission.instructions,
        grounding: groundingOf(turn, passages),
        passages,
        context: request.context,
        history,
        message: request.message,
        files,
        contextWindow: runtime.contextWindow,
        now: turn.opening.startedAt,
        runId: turn.opening.runId
      }),
      tools: tools.declarations,
      question: request.message,
      passages: Passages.asRead(passages)
    },
    (delta) => say(turn, telling.say(delta))
  )
  const cutShort = Effect.suspend(() =>
    telling.text === ""
      ? ModelStep.turnFailed()
      : Effect.succeed({ inputTokens: 0, outputTokens: 0, reason: "stopped" as const })
  )
  const written = yield* unlessCancelled(turn.cancellation, step, cutShort)
  yield* Effect.forEach(telling.end(), (part) => emit(turn, part), { discard: true })
  return { ...written, text: telling.text }
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

/** Fails when the model does, and when the turn is stopped before anything was said. */
export const run = Traced.fn("Answer.run")(function* (
  means: Means,
  turn: Turn,
  history: ReadonlyArray<HistoryMessage>
) {
  const finding = find(means, turn, history)
  const gathering = means.tools.forTurn(turn.scope, turn.request, turn.admission.hasTools)
  const preparing = turn.admission.hasTools
    ? Effect.all([finding, gathering], { concurrency: 2 })
    : Effect.zip(finding, gathering)
  const [passages, given] = yield* unlessCancelled(
    turn.cancellation,
    preparing,
    Effect.suspend(ModelStep.turnFailed)
  )
  const tools = HandoffTool.added(turn, given)
  yield* emit(turn, { _tag: "StepStart" })
  const marks = groundingOf(turn, passages) === null ? "none" : "removed"
  const telling = new Citations.Telling(Citations.candidatesOf(passages), marks)
  const written = yield* write(means, turn, history, passages, telling, tools)
  const { inputTokens, outputTokens, reason } = written
  const text = yield* withFarewell(turn, written.text)
  yield* record(turn, "model.completed", "complete", "Model replied", {
    model: turn.admission.model ?? means.runtime.defaultModel,
    reason,
    inputTokens,
    outputTokens
  })
  const citations = telling.cited
  yield* emit(turn, { _tag: "StepEnd" })
  const label = reason === "stopped" ? "Stopped" : "Run completed"
  const answered: Answer = { reply: text, citations, inputTokens, outputTokens, label }
  return answered
})
