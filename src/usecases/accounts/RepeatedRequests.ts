/**
 * API requests repeated with the same Idempotency-Key. A repeat gets the first response, and nothing is done twice.
 * When the outcome of the first one is unknown, the repeat is refused.
 */
import { createHash } from "node:crypto"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { SecretBox } from "../../capabilities/SecretBox.ts"
import type { SessionUser } from "../../domain/accounts/Access.ts"
import { Conflict } from "../../domain/Errors.ts"
import type { RepeatableRequest } from "../../domain/IdempotencyKey.ts"
import { ManageAnswerStore } from "../../store/accounts/ManageAnswers.ts"

/** The stored response. */
const StoredAnswer = Schema.parseJson(
  Schema.Struct({ status: Schema.Int, contentType: Schema.String, body: Schema.String })
)
type StoredAnswer = typeof StoredAnswer.Type

/** Refuses a key that was sent with another request. */
export const differentRequest = () =>
  new Conflict({
    message: "This Idempotency-Key was sent with another request. Use a new one for each request."
  })
const unknownOutcome = () =>
  new Conflict({
    message:
      "The first request with this Idempotency-Key has not ended, or its result is unknown. Check its effect before you send another."
  })

/** Hash that identifies a request. */
export const hashOf = (...parts: ReadonlyArray<string>): Uint8Array =>
  createHash("sha256").update(JSON.stringify(parts)).digest()

/**
 * Hash that identifies what the user's request with `idempotencyKey` adds to `subject`. Null without a key, and for a
 * request of a program: its response is stored with its access token, for repeats.
 */
export const repeatHash = (
  { token, userId }: Pick<SessionUser, "token" | "userId">,
  subject: string,
  idempotencyKey: string | undefined
): Uint8Array | null =>
  idempotencyKey === undefined || token !== undefined ? null : hashOf(userId, subject, idempotencyKey)

export class RepeatedRequests extends Effect.Service<RepeatedRequests>()(
  "usecases/accounts/RepeatedRequests",
  {
    effect: Effect.gen(function* () {
      const store = yield* ManageAnswerStore
      const box = yield* SecretBox

      /** The response to the earlier request; none for the first one. */
      const begin = Effect.fn("RepeatedRequests.begin")(function* (request: RepeatableRequest) {
        const earlier = yield* store.claim(request)
        if (Option.isNone(earlier)) return Option.none<StoredAnswer>()
        if (!earlier.value.isSame) return yield* differentRequest()
        if (earlier.value.answer === null) return yield* unknownOutcome()
        const opened = yield* box.open("stored-answer", earlier.value.answer)
        if (Option.isNone(opened)) return yield* unknownOutcome()
        return Option.some(yield* Effect.orDie(Schema.decode(StoredAnswer)(opened.value)))
      })

      /** Stores the response. A response that refused the request, which changed nothing, leaves the key unused. */
      const end = Effect.fn("RepeatedRequests.end")(function* (
        request: RepeatableRequest,
        answer: StoredAnswer
      ) {
        if (answer.status >= 400 && answer.status < 500) return yield* store.release(request)
        // The outcome is unknown: the key stays claimed without a response.
        if (answer.status >= 500) return
        yield* store.keep(request, yield* box.seal("stored-answer", JSON.stringify(answer)))
      })

      return { begin, end, sweep: store.sweep } as const
    })
  }
) {}
