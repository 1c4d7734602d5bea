/** Source type QA: each question with its answer is a document, which the question names. */
import { createHash } from "node:crypto"
import * as Stream from "effect/Stream"
import type { QaConfig, QaPair } from "../domain/knowledge/CuratedSource.ts"
import type { ReadDocument, Reader } from "./Reader.ts"

/** By the question alone, so that a pair keeps its address wherever it stands in the list. */
const uriOf = (question: string): string =>
  `qa:${createHash("sha256").update(question).digest("hex").slice(0, 16)}`

/** A question that is asked twice is one document with both answers. */
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
