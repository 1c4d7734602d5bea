import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { moveAnswers, type MoveRequest, removedOriginal } from "../../domain/accounts/TenantMove.ts"
import { NotFound } from "../../domain/Errors.ts"
import { TenantGate } from "../../usecases/operations/moves/TenantGate.ts"
import { TenantMoves } from "../../usecases/operations/moves/TenantMoves.ts"
import { Api } from "../Api.ts"
import { RequestId } from "../server/RequestId.ts"

/** Encodes an answer with the schema that belongs to its request. */
const encodeAnswer = ({ _tag }: MoveRequest, answer: unknown) =>
  Schema.encodeUnknown(moveAnswers.get(_tag) ?? Schema.Any)(answer)

const changesState = new Set<MoveRequest["_tag"]>(["Begin", "Forget", "HandOver", "Release", "Serve"])

/** Has a reason, because another 404, such as that of a proxy, must not make the original count as removed. */
const originalRemoved = () =>
  new NotFound({ message: "There is no such original.", details: { reason: removedOriginal } })

/** Maximum originals in memory; the others wait. */
const maxConcurrentOriginals = 2

export const MovesHandlers = HttpApiBuilder.group(Api, "moves", (handlers) =>
  Effect.gen(function* () {
    const moves = yield* TenantMoves
    const gate = yield* TenantGate
    const semaphore = yield* Effect.makeSemaphore(maxConcurrentOriginals)
    return handlers
      .handle("ask", ({ path: { id }, payload }) =>
        RequestId.pipe(
          Effect.flatMap((requestId) => moves.ask(id, payload, requestId)),
          // The next request to this process then sees the new state.
          Effect.tap(() => (changesState.has(payload._tag) ? gate.refresh : Effect.void)),
          Effect.flatMap((answer) => Effect.orDie(encodeAnswer(payload, answer)))
        )
      )
      .handleRaw("original", ({ path: { id, ref } }) =>
        moves.getOriginal(id, ref).pipe(
          Effect.flatMap(Option.match({ onNone: originalRemoved, onSome: Effect.succeed })),
          Effect.map((bytes) =>
            HttpServerResponse.uint8Array(bytes, { contentType: "application/octet-stream" })
          ),
          semaphore.withPermits(1)
        )
      )
      .handleRaw("putOriginal", ({ path: { id, ref }, request }) =>
        // The boundary answers for a body that cannot be read.
        Effect.catchTag(request.arrayBuffer, "RequestError", Effect.die).pipe(
          Effect.flatMap((bytes) => moves.putOriginal(id, new Uint8Array(bytes), ref)),
          semaphore.withPermits(1)
        )
      )
  })
)
