/** Source type QA: each question with its answer is a document. The question identifies it. */
import { createHash } from "node:crypto"
import * as Stream from "effect/Stream"
import type { QaConfig, QaPair } from "../domain/knowledge/CuratedSource.ts"
import type { ReadDocument, Reader } from "./Reader.ts"

/** From the question only, so that a pair keeps its URI when its position changes. */
const uriOf = (question: string): string =>
  `qa:${createHash("sha256").update(question).digest("hex").slice(0, 16)}`

/** Pairs with the same question become one document with all answers. */
const documentsOf = (pairs: ReadonlyArray<QaPair>): ReadonlyArray<ReadDocument> => {
  const answers = new Map<string, Array<string>>()
  for (const { answer, question } of pairs) {
    const known = answers.get(question)
    if (known === undefined) answers.set(question, [answer])
    else known.push(answer)
  }
  return Array.from(answers, ([question, all]) => ({
    uri: uriOf(question),
    title: question,
    format: "markdown",
    content: all.join("\n\n")
  }))
}

export const reader: Reader<typeof QaConfig.Type> = {
  read: ({ pairs }) => Stream.fromIterable(documentsOf(pairs))
}
