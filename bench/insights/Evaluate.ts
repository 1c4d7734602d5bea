/**
 * Quality of the grouping of questions, on our own questions: a pair of questions is correct if both have the same
 * topic, and a question without a topic is correct alone.
 */
import * as fs from "node:fs"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Embedder } from "../../src/capabilities/Embedder.ts"
import { layerUniversalSentenceEncoder } from "../../src/capabilities/Embedder/Offline.ts"
import { mayBeEnglish } from "../../src/search/Language.ts"
import { type AskedQuestion, groupQuestions } from "../../src/search/QuestionGroups.ts"

const Line = Schema.parseJson(Schema.Struct({ topic: Schema.NullOr(Schema.String), question: Schema.String }))
type Line = typeof Line.Type

export interface Figures {
  readonly groups: number
  /** The share of grouped pairs that belong together. */
  readonly precision: number
  /** The share of pairs that belong together that are grouped. */
  readonly recall: number
  readonly f1: number
  /** The share of questions without a topic that are alone. */
  readonly noiseAlone: number
}

export const read = (file: string): ReadonlyArray<Line> =>
  fs
    .readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => Schema.decodeSync(Line)(line))

/** The result of a generator that is not interrupted. */
export const finished = <A>(steps: Generator<void, A>): A => {
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
  }
}

const round = (value: number) => Math.round(value * 1_000) / 1_000
const pairsIn = (sizes: ReadonlyArray<number>) =>
  sizes.reduce((sum, size) => sum + (size * (size - 1)) / 2, 0)

const countBy = (lines: ReadonlyArray<Line>) => {
  const counts = new Map<string, number>()
  for (const { topic } of lines) if (topic !== null) counts.set(topic, (counts.get(topic) ?? 0) + 1)
  return [...counts.values()]
}

export const measure = (lines: ReadonlyArray<Line>, vectors: ReadonlyArray<Float32Array | null>): Figures => {
  const asked = lines.map((line, place): AskedQuestion<Line> => ({
    text: line.question,
    vector: vectors[place] ?? null,
    value: line
  }))
  const groups = finished(groupQuestions(asked)).map(({ values }) => values)
  const right = groups.reduce((sum, members) => sum + pairsIn(countBy(members)), 0)
  const precision = right / pairsIn(groups.map(({ length }) => length))
  const recall = right / pairsIn(countBy(lines))
  const noise = lines.filter(({ topic }) => topic === null)
  const alone = groups.filter((members) => members.length === 1 && members[0]?.topic === null)
  return {
    groups: groups.length,
    precision: round(precision),
    recall: round(recall),
    f1: round((2 * precision * recall) / (precision + recall)),
    noiseAlone: round(alone.length / noise.length)
  }
}

/** By meaning and words with the embedding model that ships with the package, and by words alone. */
export const run = (file: string, script: URL) => {
  const lines = read(file)
  return Effect.gen(function* () {
    const embedder = yield* Embedder
    const vectors = yield* Effect.forEach(lines, ({ question }) =>
      mayBeEnglish(question) ? embedder.embedQuery(question) : Effect.succeed(null)
    )
    return {
      questions: lines.length,
      embedder: embedder.profile,
      meaning: measure(lines, vectors),
      words: measure(lines, []),
      vectors
    }
  }).pipe(Effect.provide(layerUniversalSentenceEncoder({ script })), Effect.runPromise)
}
