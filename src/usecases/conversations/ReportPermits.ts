/** Limits the reports that read and compare many turns at the same time. */
import * as Effect from "effect/Effect"
import { withSharedPermit } from "../../concurrency/CurrentOwner.ts"
import { FairLimiter } from "../../concurrency/FairLimiter.ts"
import { ServiceUnavailable } from "../../domain/Errors.ts"

const tooManyReports = () =>
  new ServiceUnavailable({
    message: "Too many reports are under way. Try again in half a minute.",
    details: { retryAfterSeconds: 30 }
  })

export class ReportPermits extends Effect.Service<ReportPermits>()("usecases/conversations/ReportPermits", {
  sync: () => {
    const limiter = new FairLimiter({
      name: "reports",
      permits: 2,
      maxPermitsPerOwner: 1,
      maxWaiting: 256,
      maxWait: "1 minute"
    })
    return { withPermit: withSharedPermit(limiter, tooManyReports) } as const
  }
}) {}
