/** The answer of a turn: search, model, citations. A stopped turn keeps the text so far. */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { FinishReason } from "../../capabilities/ModelRuntime.ts"
import type { Citation, TurnFailure, TurnPart } from "../../domain/chat/ChatTurn.ts"
import * as ResponseSchema from "../../domain/chat/ResponseSchema.ts"
import { TurnFailed } from "../../domain/Errors.ts"
import type { JsonObject } from "../../domain/Text.ts"
import * as CheapSpans from "../../concurrency/CheapSpans.ts"
import { inSlices } from "../../concurrency/InSlices.ts"
import { terms } from "../../search/Tokenizer.ts"
import type { HistoryMessage } from "../../store/chat/Turns.ts"
import * as Citations from "./grounding/Citations.ts"
import * as Curated from "./grounding/Curated.ts"
import { blockedNoticeFor, refusalFor, handoffNoticeFor } from "../../domain/chat/Notices.ts"
import * as Grounding from "./grounding/Grounding.ts"
import { minScores } from "./grounding/MinScores.ts"
import * as HandoffTool from "./tools/HandoffTool.ts"
import * as MaskedTurn from "./masking/MaskedTurn.ts"
import * as ModelStep from "./ModelStep.ts"
import * as Passages from "./grounding/Passages.ts"
import * as Prompt from "./Prompt.ts"
import * as StructuredReply from "./StructuredReply.ts"
import { withoutCredentials } from "./tools/Scrub.ts"
import * as SearchTool from "./tools/SearchTool.ts"
import type { TurnTools } from "./tools/Tools.ts"
import * as ToolSteps from "./tools/ToolSteps.ts"
import { noFiles } from "./TurnOptions.ts"
import { callingTurn, emit, mayShowReasoning, record, emitWithBackpressure, type Turn } from "./Turn.ts"
import { unlessCancelled } from "./TurnCancellation.ts"
import type { TurnServices } from "./TurnServices.ts"

export interface Answer {
  readonly reply: string
  readonly citations: ReadonlyArray<Citation>
  /** 0 for a reply that ended early. */
  readonly inputTokens: number
  readonly outputTokens: number
  /** Label of the run's last event. */
  readonly label: "Run completed" | "Stopped"
}

/** Searches for `query` and returns the passages not in `before`, within `tokens`. Records the search in the trace. */
const findPassages = CheapSpans.fn("Answer.findPassages")(function* (
  services: TurnServices,
  turn: Turn,
  query: string,
  tokens: number,
  before?: ReadonlyArray<Passages.Passage>
) {
  const { admission, request, scope } = turn
  const text = MaskedTurn.searchable(turn, query)
  const searching = services.search.search(scope, {
    text,
    topK: admission.topK,
    ...minScores(admission.minScore, services.runtime, services.embedder),
    filter: request.filter
  })
  const [found, curated] =
    admission.hasCurated && before === undefined
      ? yield* Effect.all(
          [
            searching,
            Curated.find(services, scope, MaskedTurn.searchable(turn, request.message), request.filter)
          ],
          { concurrency: 2 }
        )
      : [yield* searching, null]
  const chunks = Curated.prependCurated(curated, found.chunks, admission.topK)
  yield* record(turn, "retrieval.completed", "complete", "Knowledge base searched", {
    query: withoutCredentials(request, text),
    degraded: found.degraded,
    ...(request.filter === undefined ? {} : { filter: request.filter }),
    ...(curated === null ? {} : { curated: { question: curated.question, likeness: curated.likeness } }),
    chunks: chunks.map(({ id, sourceId, title, score, lexical, semantic }) => ({
      id,
      sourceId,
      title,
      score,
      lexical,
      semantic
    }))
  })
  const curatedIds = new Set(curated?.chunks.map(({ id }) => id))
  const around = chunks.length === 0 ? [] : yield* services.texts.around(scope, chunks)
  const passages = Passages.fitPassages(chunks, around, tokens, before)
  return passages.map((passage) => ({ ...passage, curated: curatedIds.has(passage.chunk.id) }))
})

/** The turn's tools, with the search tool where the agent allows it. All searches together share one token budget. */
const withSearchTool = (
  services: TurnServices,
  turn: Turn,
  tools: TurnTools,
  passages: ReadonlyArray<Passages.Passage>,
  stream: Citations.CitationStream
): TurnTools => {
  if (!SearchTool.isOffered(turn, services.runtime)) return tools
  let shown = passages
  const tokensPerSearch = Passages.budgetOf(services.runtime, turn.admission) / turn.admission.maxSearches
  // Searches run one at a time, because each continues the numbering of the one before.
  const oneAtATime = Effect.unsafeMakeSemaphore(1).withPermits(1)
  return SearchTool.addTo(turn, tools, (query) =>
    Effect.suspend(() => findPassages(services, turn, query, tokensPerSearch, shown)).pipe(
      Effect.tap((found) =>
        Effect.sync(() => {
          shown = [...shown, ...found]
          turn.shown.push(...Passages.toRunPassages(found))
          stream.add(Citations.candidatesOf(found))
        })
      ),
      oneAtATime
    )
  )
}

/** The rules about sources in the prompt; null for an agent without sources. */
const groundingOf = ({ admission }: Turn, passages: ReadonlyArray<Passages.Passage>) =>
  admission.hasSources || passages.length > 0 ? admission.groundingMode : null

/** The model's reply, or the text so far when the turn was stopped. */
const generate = CheapSpans.fn("Answer.generate")(function* (
  { runtime }: TurnServices,
  turn: Turn,
  history: ReadonlyArray<HistoryMessage>,
  passages: ReadonlyArray<Passages.Passage>,
  stream: Citations.CitationStream,
  tools: TurnTools,
  schema: JsonObject | null,
  send: (parts: ReadonlyArray<TurnPart>) => Effect.Effect<void>
) {
  const { admission, request } = turn
  const files =
    turn.files === noFiles
      ? []
      : yield* unlessCancelled(turn.cancellation, turn.files.load, Effect.suspend(ModelStep.turnFailed))
  turn.counted = true
  turn.shown.push(...Passages.toRunPassages(passages))
  const step = ToolSteps.run(
    runtime,
    turn,
    tools,
    {
      model: admission.model,
      prompt: yield* inSlices(
        Prompt.render({
          instructions: admission.instructions,
          style: admission,
          grounding: groundingOf(turn, passages),
          maySearch: SearchTool.isOffered(turn, runtime),
          passages,
          context: request.context,
          history,
          message: request.message,
          masking: turn.masking,
          files,
          contextWindow: runtime.contextWindow,
          responseSchema: schema ?? undefined,
          now: turn.opening.startedAt,
          runId: turn.opening.runId
        })
      ),
      tools: tools.declarations,
      question: runtime.readsPassages ? request.message : MaskedTurn.mask(turn, request.message),
      passages: Passages.toRuntimePassages(passages),
      responseSchema: schema ?? undefined
    },
    {
      // An object is emitted only after it was validated.
      onDelta: (delta) => (schema === null ? send(stream.addText(delta)) : Effect.void),
      onReasoning: mayShowReasoning(turn) ? (delta) => send([{ _tag: "ReasoningDelta", delta }]) : null
    },
    (text) =>
      schema === null
        ? null
        : Either.match(
            StructuredReply.read(schema, text, stream.known, MaskedTurn.restoreObject(turn, tools)),
            {
              onLeft: (problems) => MaskedTurn.mask(turn, StructuredReply.correction(problems)),
              onRight: () => null
            }
          )
  )
  const noTokens = { inputTokens: 0, outputTokens: 0, reasoningTokens: 0, final: "" }
  /** The text so far, if there is one; its tokens were not reported. An object is emitted whole or not at all. */
  const endEarly = (reason: "other" | "stopped", failure: TurnFailure) =>
    stream.text === "" ? Effect.fail(failure) : Effect.succeed({ ...noTokens, reason })
  const endStopped = Effect.suspend(() => endEarly("stopped", ModelStep.turnFailed()))
  // A turn that has requested a human does not fail after it has streamed a reply.
  return yield* Effect.catchAll(unlessCancelled(turn.cancellation, step, endStopped), (failure) =>
    turn.handoff === null ? Effect.fail(failure) : endEarly("other", failure)
  )
}, Effect.scoped)

/** Checks the reply against its citations. The cost of a model that the checker calls is added to the turn. */
const checkGrounding = (
  { checker }: TurnServices,
  turn: Turn,
  reply: string,
  citations: ReadonlyArray<Citation>
) =>
  Effect.tap(
    Grounding.check(MaskedTurn.checker(turn, checker), reply, citations, Deferred.await(turn.cancellation)),
    ({ bills }) => Effect.sync(() => turn.bills.push(...bills))
  )

/** The text that replaces an unsupported reply. Requests a human where one can answer. */
const replacementFor = (turn: Turn): string => {
  const { admission, request } = turn
  if (admission.unsupported !== "handoff" || !HandoffTool.isOffered(turn)) return refusalFor(request.message)
  turn.handoff ??= "The sources do not support what the model replied."
  return handoffNoticeFor(request.message)
}

/** Maximum characters of a withheld reply that the trace keeps. */
const maxWithheldLength = 8_000

/**
 * Finishes a text reply and returns it with its citations. Where the agent's policy may replace the reply, `held` is
 * all of it and nothing has been emitted yet.
 */
const finishText = CheapSpans.fn("Answer.finishText")(function* (
  services: TurnServices,
  turn: Turn,
  stream: Citations.CitationStream,
  held: ReadonlyArray<TurnPart> | null
) {
  const grounding = yield* services.runtime.readsPassages
    ? Effect.succeed(Grounding.unchecked(stream.cited))
    : checkGrounding(services, turn, stream.text, stream.cited)
  const isReplaced = held !== null && grounding.isUnsupported
  const text = isReplaced ? replacementFor(turn) : stream.text
  const parts: ReadonlyArray<TurnPart> = isReplaced ? [{ _tag: "TextDelta", delta: text }] : (held ?? [])
  yield* Effect.forEach(parts, (part) => emit(turn, part), { discard: true })
  const withheld = MaskedTurn.maskKnown(turn, stream.text).slice(0, maxWithheldLength).toWellFormed()
  return {
    ...grounding,
    text,
    citations: isReplaced ? [] : grounding.citations,
    /** Citations that were not sent with the text. */
    unsent: [],
    payload: isReplaced ? { ...grounding.payload, withheld } : grounding.payload
  }
})

/** Validates the model's reply against `schema` and returns the object with the citations of its texts. */
const finishObject = CheapSpans.fn("Answer.finishObject")(function* (
  services: TurnServices,
  turn: Turn,
  stream: Citations.CitationStream,
  tools: TurnTools,
  schema: JsonObject,
  final: string
) {
  const failed = (problem: string, message: string) =>
    Effect.zipRight(
      record(turn, "model.completed", "failed", "The reply cannot be used", {
        problem: MaskedTurn.mask(turn, problem),
        ...MaskedTurn.tracePayload(turn)
      }),
      Effect.suspend(() => {
        turn.providerProblem = "answer_broken"
        return Effect.fail(new TurnFailed({ message }))
      })
    )
  const read = StructuredReply.read(schema, final, stream.known, MaskedTurn.restoreObject(turn, tools))
  if (Either.isLeft(read)) {
    return yield* failed(
      read.left.join("; "),
      "The model's reply did not match the responseSchema, also not at the second attempt."
    )
  }
  const { marked, numbers, reply } = read.right
  const grounding = yield* checkGrounding(services, turn, marked, stream.of(numbers))
  if (grounding.isUnsupported && turn.admission.unsupported !== "annotate") {
    return yield* failed("not supported by its sources", "The sources do not support what the model replied.")
  }
  // The positions refer to the text with marks, which is not sent.
  const citations = grounding.citations.map(({ end: _, start: __, ...citation }): Citation => citation)
  const plainStream = new Citations.CitationStream(citations, "kept")
  yield* Effect.forEach([...plainStream.addText(reply), ...plainStream.end()], (part) => emit(turn, part), {
    discard: true
  })
  return { ...grounding, text: reply, citations, unsent: plainStream.rest(citations) }
})

/** If there is no text, adds a notice: that a human takes over, or that the provider has withheld the reply. */
const withNotice = (turn: Turn, text: string, reason: FinishReason | "stopped") => {
  const noticeFor =
    turn.handoff !== null ? handoffNoticeFor : reason === "content-filter" ? blockedNoticeFor : null
  if (noticeFor === null || text.trim() !== "") return Effect.succeed(text)
  const delta = noticeFor(turn.request.message)
  return Effect.as(emit(turn, { _tag: "TextDelta", delta }), delta)
}

/** Ends a turn whose model failed after it had requested a human: the reply is the hand-over notice. */
export const addHandoffNotice = CheapSpans.fn("Answer.addHandoffNotice")(function* (turn: Turn) {
  const answered: Answer = {
    reply: yield* withNotice(turn, "", "other"),
    citations: [],
    inputTokens: 0,
    outputTokens: 0,
    label: "Stopped"
  }
  return answered
})

/** True when a question got no answer from the sources. A tool's answer counts as one; a greeting is not a question. */
const isUnanswered = (
  { runtime }: TurnServices,
  { acted, admission, request }: Turn,
  { citations, isUnsupported }: Grounding.Grounding
): boolean =>
  isUnsupported ||
  (citations.length === 0 &&
    !acted &&
    (admission.hasSources || runtime.readsPassages) &&
    terms(request.message).length > 0)

/** The schema that the reply must fit; null where the reply is text. */
const schemaOf = ({ request: { responseSchema } }: Turn): JsonObject | null =>
  responseSchema === undefined ? null : Either.getOrNull(ResponseSchema.resolved(responseSchema))

/** Fails when the model fails, and when the turn is stopped before there is any text. */
export const run = CheapSpans.fn("Answer.run")(function* (
  services: TurnServices,
  turn: Turn,
  history: ReadonlyArray<HistoryMessage>
) {
  yield* MaskedTurn.learn(turn, history)
  const query = MaskedTurn.searchQuery(turn, history)
  const finding = findPassages(services, turn, query, Passages.budgetOf(services.runtime, turn.admission))
  const gathering = services.tools.forTurn(turn.scope, turn.request, turn.admission, callingTurn(turn))
  const preparing = turn.admission.hasTools
    ? Effect.all([finding, gathering], { concurrency: 2 })
    : Effect.zip(finding, gathering)
  const [passages, agentTools] = yield* unlessCancelled(
    turn.cancellation,
    preparing,
    Effect.suspend(ModelStep.turnFailed)
  )
  yield* emit(turn, { _tag: "StepStart" })
  // In extracts, brackets with other numbers are text of the sources.
  const unknownMarks = services.runtime.readsPassages ? "kept" : "removed"
  const marks = groundingOf(turn, passages) === null ? "none" : unknownMarks
  const stream = new Citations.CitationStream(Citations.candidatesOf(passages), marks)
  const tools = withSearchTool(
    services,
    turn,
    HandoffTool.addTo(turn, MaskedTurn.tools(turn, agentTools)),
    passages,
    stream
  )
  const mayBeReplaced = marks === "removed" && turn.admission.unsupported !== "annotate"
  const held: Array<TurnPart> | null = mayBeReplaced ? [] : null
  const send = (parts: ReadonlyArray<TurnPart>) =>
    held === null ? emitWithBackpressure(turn, parts) : Effect.sync(() => void held.push(...parts))
  const schema = schemaOf(turn)
  const written = yield* generate(services, turn, history, passages, stream, tools, schema, send)
  // Without backpressure: a cancelled turn must not wait for its reader.
  for (const part of stream.end()) yield* held === null ? emit(turn, part) : send([part])
  const grounding =
    schema === null
      ? yield* finishText(services, turn, stream, held)
      : yield* finishObject(services, turn, stream, tools, schema, written.final)
  turn.summary.unanswered = isUnanswered(services, turn, grounding)
  turn.summary.stopped = written.reason === "stopped"
  const inputTokens = written.inputTokens + grounding.inputTokens
  const outputTokens = written.outputTokens + grounding.outputTokens
  const { reason } = written
  const text = yield* withNotice(turn, grounding.text, reason)
  yield* record(turn, "model.completed", "complete", "Model replied", {
    model: turn.answeringModel ?? turn.admission.model ?? services.runtime.defaultModel,
    reason,
    inputTokens,
    outputTokens,
    ...ToolSteps.reasoningPayload(written),
    ...MaskedTurn.tracePayload(turn),
    ...(grounding.payload === null ? {} : { grounding: grounding.payload })
  })
  yield* Effect.forEach(grounding.unsent, (part) => emit(turn, part), { discard: true })
  yield* emit(turn, { _tag: "StepEnd" })
  const label = reason === "stopped" ? "Stopped" : "Run completed"
  const { citations } = grounding
  const answered: Answer = { reply: text, citations, inputTokens, outputTokens, label }
  return answered
}, Effect.scoped)
