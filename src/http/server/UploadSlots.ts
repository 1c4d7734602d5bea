/** Limits the forms with files that are read at the same time, over all routes. The others wait with unread bodies. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { withSharedPermit } from "../../concurrency/CurrentOwner.ts"
import { ServiceUnavailable } from "../../domain/Errors.ts"
import { FairLimiter } from "../../concurrency/FairLimiter.ts"

/** A slow client can hold an upload for minutes, so a tenant may have at most a quarter of the slots. */
export class UploadSlots extends Context.Reference<UploadSlots>()("http/server/UploadSlots", {
  defaultValue: () =>
    new FairLimiter({
      name: "uploads",
      permits: 16,
      maxPermitsPerOwner: 4,
      maxWaiting: 256,
      maxWait: "1 minute"
    })
}) {}

const tooManyUploads = () =>
  new ServiceUnavailable({
    message: "Too many files are being uploaded. Try again later.",
    details: { retryAfterSeconds: 5 }
  })

/** Runs `upload` once the tenant gets a slot. */
export const withSlot = <A, E, R>(upload: Effect.Effect<A, E, R>) =>
  Effect.flatMap(UploadSlots, (slots) => withSharedPermit(slots, tooManyUploads)(upload))
