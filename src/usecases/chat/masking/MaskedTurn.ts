/** Applies masking to a turn's tools, checker and trace. Does nothing where the agent masks nothing. */
import * as Effect from "effect/Effect"
import type { Context } from "effect"
import type { CitedPassage, Claim, GroundingChecker } from "../../../capabilities/GroundingChecker.ts"
import { inSlices } from "../../../concurrency/InSlices.ts"
import type { JsonObject } from "../../../domain/Text.ts"
import type { HistoryMessage } from "../../../store/chat/Turns.ts"
import { searchText } from "../SearchText.ts"
import type { TurnTools } from "../tools/Tools.ts"
import type { Turn } from "../Turn.ts"
import type { Masking } from "./Masking.ts"

type Checker = Context.Tag.Service<typeof GroundingChecker>
type Masked = Pick<Turn, "masking">

/** Number of masked values so far by kind, for the trace. */
export const tracePayload = ({ masking }: Masked): Readonly<Record<string, unknown>> =>
  masking === null ? {} : { masking: masking.counts }

function* learnAll(
  masking: Masking,
  { context, message }: Turn["request"],
  history: ReadonlyArray<HistoryMessage>
): Generator<void, void> {
  for (const { content } of history) {
    yield* masking.learnInSteps(content)
    yield
  }
  if (context !== undefined) yield* masking.learnJsonInSteps(context)
  yield* masking.learnInSteps(message)
}

/** Reads all customer texts that the turn will send first: one text may show what a number in another one is. */
export const learn = (
  { masking, request }: Pick<Turn, "masking" | "request">,
  history: ReadonlyArray<HistoryMessage>
): Effect.Effect<void> => (masking === null ? Effect.void : inSlices(learnAll(masking, request, history)))

/** The text that may be searched for: embedding and ranking may call an outside provider. */
export const searchable = ({ masking }: Masked, text: string): string => masking?.searchable(text) ?? text

/** The first search query. It is masked before it is cut, so that no part of a value remains. */
export const searchQuery = (
  { masking, request: { message } }: Pick<Turn, "masking" | "request">,
  history: ReadonlyArray<HistoryMessage>
): string => {
  const last = history.findLast(({ role }) => role === "user")
  if (masking === null || last === undefined) return searchText(message, history)
  return searchText(masking.searchable(message), [{ ...last, content: masking.searchable(last.content) }])
}

/** Masks values that were restored before. For text that the model wrote. */
export const maskKnown = ({ masking }: Masked, text: string): string => masking?.maskKnown(text) ?? text

export const mask = ({ masking }: Masked, text: string): string => masking?.mask(text) ?? text

/** Tools that receive placeholders, unless the agent allows them the values. Their answers are masked. */
export const tools = ({ masking }: Masked, given: TurnTools): TurnTools => {
  if (masking === null) return given
  const call: TurnTools["call"] = (name, input, progress) =>
    Effect.suspend(() => {
      if (given.isRecorded) return Effect.map(given.call(name, input, progress), masking.maskRecordedAnswer)
      const sent = input !== null && masking.trusts(name) ? masking.restoreObject(input) : input
      return given
        .call(name, sent, (text) => progress(masking.mask(text)))
        .pipe(
          Effect.map((answer) => masking.maskToolAnswer(input, answer)),
          Effect.mapError((failure) => ({ ...failure, message: masking.mask(failure.message) }))
        )
    })
  return { ...given, call }
}

/** The claims with placeholders. A passage stays one object in all claims, because checkers analyse each object once. */
function* maskedClaims(
  masking: Masking,
  claims: ReadonlyArray<Claim>
): Generator<void, ReadonlyArray<Claim>> {
  const known = new Map<CitedPassage, CitedPassage>()
  for (const passage of new Set(claims.flatMap(({ passages }) => passages))) {
    const title = masking.maskPassage(passage.title)
    known.set(passage, { ...passage, title, text: masking.maskPassage(passage.text) })
    yield
  }
  return claims.map(({ passages, text }) => ({
    text: masking.maskKnown(text),
    passages: passages.map((passage) => known.get(passage) ?? passage)
  }))
}

/** A checker may call a model or a service. Statements and passages have the same placeholders for the same values. */
export const checker = ({ masking }: Masked, given: Checker): Checker =>
  masking === null
    ? given
    : {
        name: given.name,
        check: (claims, cancelled) =>
          Effect.flatMap(inSlices(maskedClaims(masking, claims)), (masked) =>
            given.check(masked, cancelled)
          ).pipe(
            Effect.map(({ verdicts, ...result }) => ({
              ...result,
              verdicts: verdicts.map(({ spans, ...verdict }) => ({
                ...verdict,
                spans: spans.map((span) => ({ ...span, text: masking.restore(span.text) }))
              }))
            }))
          )
      }

/** An object that the model wrote, with values restored, for display. */
export const restoreObject =
  ({ masking }: Masked, { scrubber }: TurnTools) =>
  (object: JsonObject): JsonObject =>
    masking === null ? object : scrubber.object(masking.restoreObject(object))
