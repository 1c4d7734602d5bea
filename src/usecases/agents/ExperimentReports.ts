/** Hashes that identify the input of an experiment, and the report of its results. */
import { createHash } from "node:crypto"
import * as Effect from "effect/Effect"
import { inSlices } from "../../concurrency/InSlices.ts"
import {
  compare,
  compareCases,
  type Comparison,
  isRegression,
  summarize
} from "../../domain/agents/evaluation/Report.ts"
import type { TestCase, TestCaseFields } from "../../domain/agents/TestCase.ts"
import { canonical } from "../../domain/Json.ts"
import type { AgentSettings } from "../../store/agents/AgentSettings.ts"
import type { MeasuredOutcome } from "../../store/agents/Experiments.ts"

const hashOf = (value: unknown): string => createHash("sha256").update(canonical(value)).digest("hex")

/** Hash of the settings that a reply depends on: not the name, the greeting, or whether streams carry the reasoning. */
export const settingsHash = ({ greeting: _, name: __, ...settings }: AgentSettings): string =>
  hashOf({ ...settings, streamReasoning: false })

/** Hash of what the cases expect, independent of their order. */
export const casesHash = (cases: ReadonlyArray<TestCaseFields>): string =>
  hashOf(cases.map(({ note: _, ...expected }) => canonical(expected)).toSorted())

/** A stored case in the form of files and requests. */
export const testCaseFields = ({
  criterion,
  expectFacts,
  expectGrounding,
  expectRefusal,
  expectSources,
  note,
  question,
  responseSchema
}: TestCase): TestCaseFields => ({
  question,
  expectSources,
  expectFacts,
  ...(expectRefusal === null ? {} : { expectRefusal }),
  ...(expectGrounding === null ? {} : { expectGrounding }),
  ...(responseSchema === null ? {} : { responseSchema }),
  ...(criterion === null ? {} : { criterion }),
  ...(note === null ? {} : { note })
})

type Outcomes = ReadonlyArray<MeasuredOutcome>

const resultsOf = (measured: Outcomes) => ({
  results: measured.map(({ position, result, ...asked }) => ({ ...result, ...asked, line: position + 1 }))
})

const keyOf = ({ key }: Pick<MeasuredOutcome, "key">) => key

export const reportOf = (measured: Outcomes) => summarize(resultsOf(measured).results)

/** `regression` is true when significantly fewer cases pass, as for the publish gate. */
export const comparisonOf = (before: Outcomes, after: Outcomes): Effect.Effect<Comparison> =>
  Effect.map(inSlices(compare(resultsOf(before), resultsOf(after), keyOf)), (comparison) => ({
    ...comparison,
    regression: isRegression(comparison)
  }))

/** The questions of cases that passed before and fail now. Empty unless significantly fewer cases pass. */
export const brokenCases = (before: Outcomes, after: Outcomes): ReadonlyArray<string> => {
  const changed = compareCases(resultsOf(before), resultsOf(after), keyOf)
  return isRegression(changed) ? changed.broken : []
}
