/** Input and figures of an experiment: cases, settings and results. */
import { createHash } from "node:crypto"
import {
  compare,
  type Comparison,
  isRegression,
  type Report,
  summarize
} from "../../domain/agents/evaluation/Report.ts"
import type { ExperimentOutcome } from "../../domain/agents/Experiment.ts"
import type { TestCase, TestCaseFields } from "../../domain/agents/TestCase.ts"
import { canonical } from "../../domain/Json.ts"
import type { AgentSettings } from "../../store/agents/AgentSettings.ts"

const hashed = (value: unknown): string => createHash("sha256").update(canonical(value)).digest("hex")

/** Hash of the settings that a reply depends on. Agents that differ only in name and greeting have the same one. */
export const settingsHash = ({ greeting: _, name: __, ...settings }: AgentSettings): string =>
  hashed(settings)

/** Hash of what the cases expect, independent of their order. */
export const casesHash = (cases: ReadonlyArray<TestCaseFields>): string =>
  hashed(cases.map(({ note: _, ...expected }) => canonical(expected)).toSorted())

/** A stored case in the form of files and requests. */
export const fieldsOf = ({
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

export const reportOf = (
  measured: ReadonlyArray<{
    readonly position: number
    readonly question: string
    readonly result: ExperimentOutcome
  }>
): Report =>
  summarize(measured.map(({ position, question, result }) => ({ ...result, line: position + 1, question })))

/** Publishing and plans use `regression`. */
export const comparisonOf = (before: Report, after: Report): Comparison => {
  const comparison = compare(before, after)
  return { ...comparison, regression: isRegression(comparison) }
}
