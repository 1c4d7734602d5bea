/**
 * The rounds of a turn with tools: the model calls tools and gets their answers until it makes no more calls.
 * Everything that a client sees is scrubbed, including the streamed reply.
 */
import * as Prompt from "@effect/ai/Prompt"
import * as Effect from "effect/Effect"
import {
  type ModelRequest,
  type ModelRuntimeService,
  unbilledProblems
} from "../../../capabilities/ModelRuntime.ts"
import type { Bill } from "../../../domain/billing/Cost.ts"
import type { ProviderProblem } from "../../../domain/chat/AgentRun.ts"
import type { JsonObject, JsonValue } from "../../../domain/Text.ts"
import * as CheapSpans from "../../../concurrency/CheapSpans.ts"
import { nameOf, unpricedBill } from "../../billing/BilledModel.ts"
import * as MaskedTurn from "../masking/MaskedTurn.ts"
import { toolFailure } from "../../../domain/agents/ToolFailure.ts"
import type { TurnFailure } from "../../../domain/chat/ChatTurn.ts"
import { toText } from "../../../domain/Json.ts"
import * as ModelStep from "../ModelStep.ts"
import type { TurnTools } from "./Tools.ts"
import { emit, record, type Turn } from "../Turn.ts"

/** Maximum rounds of one turn. In the last one the model has no tools, so that it answers. */
const maxSteps = 8
/** Maximum calls of one round. The model is told that the others were not made. */
const maxCallsPerStep = 16
const maxConcurrentCalls = 4
/** Maximum progress texts of one call, and maximum characters of each. */
const maxProgressTexts = 100
const maxProgressCharacters = 500
/** Maximum characters of one tool answer that the model is shown. */
const maxAnswerCharacters = 32 * 1024

type Call = ModelStep.StepResult["calls"][number]

interface Answered {
  readonly call: Call
  readonly isFailure: boolean
  readonly result: JsonValue
}

const cutNote = "\n[The rest of the answer was cut off.]"

/** `value` if it fits, else the beginning of its text with a note. */
const cut = (value: JsonValue, limit: number): JsonValue => {
  const text = toText(value)
  return text.length <= limit ? value : `${text.slice(0, Math.max(0, limit)).toWellFormed()}${cutNote}`
}

/** Emits a call's progress until it has ended, scrubbed. Texts above the maximum are dropped. */
const progressOf = (turn: Turn, tools: TurnTools, call: Call) => {
  let left = maxProgressTexts
  return {
    emit: (progress: string) =>
      Effect.suspend(() => {
        if (left <= 0) return Effect.void
        left -= 1
        const text = tools.scrubber.text(progress).slice(0, maxProgressCharacters).toWellFormed()
        return emit(turn, { _tag: "ToolProgress", id: call.id, text })
      }),
    /** Progress after the answer would replace it. */
    end: Effect.sync(() => {
      left = 0
    })
  }
}

/** Calls one tool, and emits and records its outcome. Secrets are already removed from its output. */
const answer = CheapSpans.fn("ToolSteps.answer")(function* (
  turn: Turn,
  tools: TurnTools,
  call: Call,
  refused: boolean
) {
  const name = tools.scrubber.text(call.name)
  const input: JsonObject = tools.scrubber.object(tools.sent(call.name, call.input ?? {}))
  const about = { toolCallId: call.id, tool: name }
  yield* record(turn, "tool.started", "running", `Calling ${name}`, { ...about, input })
  yield* emit(turn, { _tag: "ToolCall", id: call.id, name, input })
  const progress = progressOf(turn, tools, call)
  const answering = refused
    ? Effect.fail(toolFailure("TOOL_FAILED", `more than ${maxCallsPerStep} calls at once`))
    : Effect.ensuring(tools.call(call.name, call.input, progress.emit), progress.end)
  return yield* Effect.matchEffect(answering, {
    onSuccess: (value) =>
      Effect.gen(function* () {
        const output = tools.uncut?.has(call.name) === true ? value : cut(value, maxAnswerCharacters)
        yield* record(turn, "tool.completed", "complete", `${name} answered`, { ...about, output })
        yield* emit(turn, { _tag: "ToolResult", id: call.id, output })
        return { call, isFailure: false, result: output } satisfies Answered
      }),
    onFailure: ({ code, message }) =>
      Effect.gen(function* () {
        yield* record(turn, "tool.failed", "failed", `${name} failed`, { ...about, code, message })
        yield* emit(turn, { _tag: "ToolFailure", id: call.id, message })
        return { call, isFailure: true, result: { error: message } } satisfies Answered
      })
  })
})

/** The prompt with this round added, including what its provider expects back: some reject tool calls without it. */
const withRound = (
  prompt: Prompt.Prompt,
  text: string,
  reasoning: ReadonlyArray<ModelStep.ReasoningBlock>,
  answers: ReadonlyArray<Answered>
): Prompt.Prompt => {
  const reasoningParts = (afterText: boolean) =>
    reasoning
      .filter((one) => one.afterText === afterText)
      .map((one) => Prompt.reasoningPart({ text: one.text, options: one.options }))
  const calls = answers.map(({ call: { id, name, input, options = {} } }) =>
    Prompt.toolCallPart({ id, name, params: input ?? {}, providerExecuted: false, options })
  )
  const results = answers.map(({ call: { id, name }, isFailure, result }) =>
    Prompt.toolResultPart({ id, name, isFailure, result, providerExecuted: false })
  )
  return Prompt.fromMessages([
    ...prompt.content,
    Prompt.assistantMessage({
      content: [
        ...reasoningParts(false),
        ...(text === "" ? [] : [Prompt.textPart({ text })]),
        ...reasoningParts(true),
        ...calls
      ]
    }),
    Prompt.toolMessage({ content: results })
  ])
}

/** One model call with its cost. The cost is unknown unless the call is known to be free. */
const withBill = (
  runtime: ModelRuntimeService,
  turn: Turn,
  { model }: ModelRequest,
  calling: Effect.Effect<ModelStep.StepResult, TurnFailure>
) => {
  if (runtime.readsPassages) return calling
  const { bills } = turn
  const billOf = (inputTokens: number, outputTokens: number): Bill => ({
    ...unpricedBill(turn.answeringModel ?? nameOf(runtime, model)),
    inputTokens,
    outputTokens
  })
  return Effect.suspend(() => {
    turn.providerProblem = null
    bills.push(billOf(0, 0))
    return Effect.tapBoth(calling, {
      onSuccess: ({ bill, inputTokens, outputTokens }) =>
        Effect.sync(() => void bills.splice(-1, 1, bill ?? billOf(inputTokens, outputTokens))),
      onFailure: () =>
        Effect.sync(() => {
          if (turn.providerProblem !== null && unbilledProblems.has(turn.providerProblem)) bills.pop()
        })
    })
  })
}

/** Emits the model's reasoning, scrubbed and with masked values restored, until `end`. */
const emitReasoning = (turn: Turn, tools: TurnTools, onReasoning: (delta: string) => Effect.Effect<void>) => {
  const begin = () => ({
    stream: tools.scrubber.streaming(),
    restoring: turn.masking?.restoringStream() ?? null
  })
  let open: ReturnType<typeof begin> | null = null
  const show = (shown: string) => (shown === "" ? Effect.void : onReasoning(shown))
  return {
    push: (delta: string) => {
      open ??= begin()
      const { restoring, stream } = open
      return show(stream.push(restoring === null ? delta : restoring.push(delta)))
    },
    /** Emits the reasoning held back, before the text that follows. */
    end: () => {
      if (open === null) return Effect.void
      const { restoring, stream } = open
      open = null
      return show((restoring === null ? "" : stream.push(restoring.flush())) + stream.flush())
    }
  }
}

/** One round. Secrets are removed from its text before it is emitted. `promptText` is the text for the next prompt. */
const step = CheapSpans.fn("ToolSteps.step")(function* (
  runtime: ModelRuntimeService,
  turn: Turn,
  request: ModelRequest,
  tools: TurnTools,
  { onDelta, onReasoning }: ToolCallbacks,
  repeatable: boolean
) {
  const reasoningStream = onReasoning === null ? null : emitReasoning(turn, tools, onReasoning)
  const stream = tools.scrubber.streaming()
  // The values of an object are restored after it was parsed.
  const restoring = request.responseSchema === undefined ? (turn.masking?.restoringStream() ?? null) : null
  let text = ""
  const show = (shown: string) => {
    text += shown
    return shown === "" ? Effect.void : onDelta(shown)
  }
  const push = (delta: string) => {
    const showing = show(stream.push(restoring === null ? delta : restoring.push(delta)))
    return reasoningStream === null ? showing : Effect.zipRight(reasoningStream.end(), showing)
  }
  const onProblem = (problem: ProviderProblem) => {
    turn.providerProblem = problem
  }
  turn.answeringModel = null
  const onAnswering = (model: string) => {
    turn.answeringModel = model
  }
  const pushReasoning = (delta: string) =>
    reasoningStream === null ? Effect.void : reasoningStream.push(delta)
  const callbacks = { onDelta: push, onReasoning: pushReasoning, onProblem, onAnswering }
  const calling = ModelStep.run(runtime, request, callbacks, repeatable)
  const result = yield* withBill(runtime, turn, request, calling)
  if (reasoningStream !== null) yield* reasoningStream.end()
  yield* Effect.suspend(() =>
    show((restoring === null ? "" : stream.push(restoring.flush())) + stream.flush())
  )
  return { ...result, text, promptText: restoring === null ? text : tools.scrubber.text(result.text) }
})

/** Reasoning tokens for the trace, where the provider reports them. */
export const reasoningPayload = ({ reasoningTokens }: Pick<ModelStep.StepResult, "reasoningTokens">) =>
  reasoningTokens === 0 ? {} : { reasoningTokens }

/** Callbacks that receive the reply as it may be shown, without delay. */
export interface ToolCallbacks {
  readonly onDelta: (delta: string) => Effect.Effect<void>
  /** Null where reasoning is not shown. */
  readonly onReasoning: ((delta: string) => Effect.Effect<void>) | null
}

/** The prompt with a reply that cannot be used and the correction for the model. */
const corrected = (prompt: Prompt.Prompt, text: string, correction: string): Prompt.Prompt =>
  Prompt.fromMessages([
    ...prompt.content,
    Prompt.assistantMessage({ content: [Prompt.textPart({ text: text === "" ? "(nothing)" : text })] }),
    Prompt.userMessage({ content: [Prompt.textPart({ text: correction })] })
  ])

/**
 * Runs the model with the turn's tools. Returns the whole reply, the tokens of all rounds, and the text of the last
 * round as `final`. Records the events of every round but the last. `correctionOf` returns the correction for a last
 * text that cannot be used, else null. With a correction there is one more round, without tools.
 */
export const run = CheapSpans.fn("ToolSteps.run")(function* (
  runtime: ModelRuntimeService,
  turn: Turn,
  tools: TurnTools,
  request: ModelRequest,
  { onDelta, onReasoning }: ToolCallbacks,
  correctionOf: (text: string) => string | null = () => null
) {
  for (const { name, failure } of tools.unavailable)
    yield* record(turn, "tool.failed", "failed", `${name} is not available`, { tool: name, ...failure })
  for (const { name, failure } of tools.leftOut)
    yield* record(turn, "tool.failed", "failed", `${name} is not complete`, { tool: name, ...failure })
  let { prompt } = request
  let text = ""
  let inputTokens = 0
  let outputTokens = 0
  let reasoningTokens = 0
  // Half of the window, at about four characters a token, is the budget of all tool answers together.
  let remainingCharacters = runtime.contextWindow * 2
  let isCorrected = false
  for (let round = 1; ; round++) {
    const separator = text === "" ? "" : "\n\n"
    let hasText = false
    const mayCall = round < maxSteps && !isCorrected
    const onText = (delta: string) => {
      const shown = hasText ? delta : separator + delta
      hasText = true
      text += shown
      return onDelta(shown)
    }
    const stepRequest: ModelRequest = mayCall
      ? { ...request, prompt, tools: tools.declarations }
      : { ...request, prompt, tools: [], withdrawnTools: tools.declarations }
    const result = yield* step(
      runtime,
      turn,
      stepRequest,
      tools,
      { onDelta: onText, onReasoning },
      round === 1
    )
    inputTokens += result.inputTokens
    outputTokens += result.outputTokens
    reasoningTokens += result.reasoningTokens
    const isLast = result.calls.length === 0 || round >= maxSteps || isCorrected
    const correction = isLast && !isCorrected ? correctionOf(result.promptText) : null
    if (isLast && correction === null) {
      return {
        ...result,
        calls: [],
        text,
        final: result.promptText,
        inputTokens,
        outputTokens,
        reasoningTokens
      }
    }
    const label = correction === null ? "Model asked for tools" : "Model asked to correct its reply"
    yield* record(turn, "model.completed", "complete", label, {
      model: turn.answeringModel ?? request.model ?? runtime.defaultModel,
      reason: result.reason,
      inputTokens: result.inputTokens,
      outputTokens: result.outputTokens,
      ...reasoningPayload(result),
      ...(correction === null ? {} : { correction }),
      ...MaskedTurn.tracePayload(turn)
    })
    if (correction !== null) {
      isCorrected = true
      prompt = corrected(prompt, result.promptText, correction)
      yield* emit(turn, { _tag: "StepEnd" })
      yield* emit(turn, { _tag: "StepStart" })
      continue
    }
    const answers = yield* Effect.forEach(
      result.calls,
      (call, index) => answer(turn, tools, call, index >= maxCallsPerStep),
      { concurrency: maxConcurrentCalls }
    )
    yield* emit(turn, { _tag: "StepEnd" })
    yield* emit(turn, { _tag: "StepStart" })
    const shown = answers.map((answered) => {
      const fitting = cut(answered.result, remainingCharacters)
      remainingCharacters = Math.max(0, remainingCharacters - toText(fitting).length)
      return { ...answered, result: fitting }
    })
    prompt = withRound(prompt, result.promptText, result.reasoning, shown)
  }
})
