/** Hashes that identify the input of an experiment, and the report of its results. */
import { createHash } from "node:crypto"
import { compare, type Comparison, isRegression, summarize } from "../../domain/agents/evaluation/Report.ts"
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

export const reportOf = (measured: ReadonlyArray<MeasuredOutcome>) => {
  const results = measured.map(({ position, result, ...asked }) => ({
    ...result,
    ...asked,
    line: position + 1
  }))
  return { ...summarize(results), results }
}
type MeasuredReport = ReturnType<typeof reportOf>

/** `regression` is true when significantly fewer cases pass. The publish gate uses it. */
export const comparisonOf = (before: MeasuredReport, after: MeasuredReport): Comparison => {
  const comparison = compare(before, after, ({ key }) => key)
  return { ...comparison, regression: isRegression(comparison) }
}
