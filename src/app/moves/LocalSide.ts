/** An installation whose database this process uses. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { MoveRequest } from "../../domain/accounts/TenantMove.ts"
import type { TenantId } from "../../domain/Ids.ts"
import { TenantMoves } from "../../usecases/operations/moves/TenantMoves.ts"
import { MoveFailed, type Side } from "./Side.ts"

const isReason = Schema.is(MoveFailed.fields.reason)

const failed = (error: {
  readonly message: string
  readonly details?: Readonly<Record<string, unknown>> | undefined
}) => {
  const reason = error.details?.["reason"]
  return new MoveFailed({ message: error.message, reason: isReason(reason) ? reason : "refused" })
}

export const localSide = (name: string, tenantId: TenantId) =>
  Effect.map(TenantMoves, (moves): Side => ({
    name,
    ask: (request) =>
      Effect.gen(function* () {
        const validRequest = yield* Effect.orDie(Schema.validate(MoveRequest)(request))
        const answer = yield* Effect.mapError(moves.ask(tenantId, validRequest, "command-line"), failed)
        return yield* Effect.orDie(Schema.validate(Schema.successSchema(request))(answer))
      }),
    original: (ref) => Effect.mapError(moves.getOriginal(tenantId, ref), failed),
    putOriginal: (ref, bytes) =>
      Effect.asVoid(Effect.mapError(moves.putOriginal(tenantId, bytes, ref), failed))
  }))
