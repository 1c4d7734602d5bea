/** Entry of the parser's worker thread: one document a message, one answer each. */
import { parentPort } from "node:worker_threads"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { ParseError } from "../capabilities/DocumentParser.ts"
import { parseDocument } from "../capabilities/DocumentParser/Document.ts"
import { type Answer, Job } from "../capabilities/DocumentParser/Messages.ts"

const answer = (message: unknown): Effect.Effect<Answer> =>
  Schema.decodeUnknown(Job)(message).pipe(
    Effect.mapError(() => new ParseError({ code: "malformed", message: "The document could not be read." })),
    Effect.flatMap(({ request, limits }) => parseDocument(request, limits)),
    Effect.match({
      onSuccess: (document) => ({ _tag: "Parsed", document }) as const,
      onFailure: ({ code, message }) => ({ _tag: "Failed", code, message }) as const
    })
  )

parentPort?.on("message", (message: unknown) => {
  Effect.runFork(Effect.map(answer(message), (reply) => parentPort?.postMessage(reply)))
})
