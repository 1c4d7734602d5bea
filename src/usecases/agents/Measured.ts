/** Input and figures of an experiment: cases, settings and results. */
import { createHash } from "node:crypto"
import {
  compare,
  type Comparison,
  passesLess,
  type Report,
  summarize
} from "../../domain/agents/evaluation/Report.ts"
import type { ExperimentOutcome } from "../../domain/agents/Experiment.ts"
import type { TestCase, TestCaseFields } from "../../domain/agents/TestCase.ts"
import { canonical } from "../../domain/Json.ts"
import type { AgentSettings } from "../../store/agents/AgentSettings.ts"

const hashed = (value: unknown): string => createHash("sha256").update(canonical(value)).digest("hex")

/** Of what a reply depends on: agents that differ in name and greeting alone answer the same. */
export const settingsHash = ({ greeting: _, name: __, ...settings }: AgentSettings): string =>
  hashed(settings)

/** Of what is expected of them, in whatever order they stand. */
export const casesHash = (cases: ReadonlyArray<TestCaseFields>): string =>
  hashed(cases.map(({ note: _, ...expected }) => canonical(expected)).toSorted())

/** A stored case as files and requests have it. */
export const fieldsOf = ({
  criterion,
  expectFacts,
  expectRefusal,
  expectSources,
  note,
  question
}: TestCase): TestCaseFields => ({
  question,
  expectSources,
  expectFacts,
  ...(expectRefusal === null ? {} : { expectRefusal }),
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

/** `regression` is what publishes and plans go by. */
export const comparisonOf = (before: Report, after: Report): Comparison => {
  const comparison = compare(before, after)
  return { ...comparison, regression: passesLess(comparison) }
}
