/**
 * Entry of the parser's worker thread: each message has a few documents, which are parsed in order, and gets one
 * message of answers.
 */
import { parentPort } from "node:worker_threads"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { ParseLimits, ParseRequest } from "../capabilities/DocumentParser.ts"
import { parseDocument } from "../capabilities/DocumentParser/Document.ts"
import { type Answer, Job } from "../capabilities/DocumentParser/Messages.ts"

const answer = (request: ParseRequest, limits: ParseLimits): Effect.Effect<Answer> =>
  Effect.match(parseDocument(request, limits), {
    onSuccess: (document) => ({ _tag: "Parsed", document }) as const,
    onFailure: ({ code, message }) => ({ _tag: "Failed", code, message }) as const
  })

parentPort?.on("message", (message: unknown) => {
  const { limits, requests } = Schema.decodeUnknownSync(Job)(message)
  Effect.runFork(
    Effect.map(
      Effect.forEach(requests, (request) => answer(request, limits)),
      (answers) => parentPort?.postMessage(answers)
    )
  )
})
