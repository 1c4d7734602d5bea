/**
 * Requests of programs that come again under the same Idempotency-Key: the second one gets the first one's answer, and
 * nothing is done twice. Where it is not known how the first one ended, the second one is refused.
 */
import { createHash } from "node:crypto"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { SecretBox } from "../../capabilities/SecretBox.ts"
import { Conflict } from "../../domain/Errors.ts"
import type { RepeatableRequest } from "../../domain/IdempotencyKey.ts"
import { ManageAnswerStore } from "../../store/accounts/ManageAnswers.ts"

/** What was answered. */
const StoredAnswer = Schema.parseJson(
  Schema.Struct({ status: Schema.Int, contentType: Schema.String, body: Schema.String })
)
type StoredAnswer = typeof StoredAnswer.Type

const another = () =>
  new Conflict({
    message: "This Idempotency-Key was sent with another request. Use a new one for each request."
  })
const unknown = () =>
  new Conflict({
    message:
      "The first request with this Idempotency-Key has not ended, or it is not known how. Look what it did before you send another."
  })

/** Tells requests apart. */
export const hashOf = (...parts: ReadonlyArray<string>): Uint8Array =>
  createHash("sha256").update(JSON.stringify(parts)).digest()

export class RepeatedRequests extends Effect.Service<RepeatedRequests>()(
  "usecases/accounts/RepeatedRequests",
  {
    effect: Effect.gen(function* () {
      const store = yield* ManageAnswerStore
      const box = yield* SecretBox

      /** The answer to the earlier request; none for the first one. */
      const begin = Effect.fn("RepeatedRequests.begin")(function* (request: RepeatableRequest) {
        const known = yield* store.claim(request)
        if (Option.isNone(known)) return Option.none<StoredAnswer>()
        if (!known.value.isSame) return yield* another()
        if (known.value.answer === null) return yield* unknown()
        const opened = yield* box.open("stored-answer", known.value.answer)
        if (Option.isNone(opened)) return yield* unknown()
        return Option.some(yield* Effect.orDie(Schema.decode(StoredAnswer)(opened.value)))
      })

      /** Keeps the answer; one that refused the request, and so changed nothing, leaves the key free. */
      const end = Effect.fn("RepeatedRequests.end")(function* (
        request: RepeatableRequest,
        answer: StoredAnswer
      ) {
        if (answer.status >= 400 && answer.status < 500) return yield* store.release(request)
        // Whether it took effect is not known.
        if (answer.status >= 500) return
        yield* store.keep(request, yield* box.seal("stored-answer", JSON.stringify(answer)))
      })

      return { begin, end, sweep: store.sweep } as const
    })
  }
) {}
