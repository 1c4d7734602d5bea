/**
 * E-mails about jobs that failed permanently. Failures are read from the database instead of being reported by workers:
 * a mail server cannot delay or fail a worker, and failures of dead processes are reported too.
 */
import { createHash } from "node:crypto"
import * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import { DedupeStore } from "../../capabilities/DedupeStore.ts"
import { Mailer } from "../../capabilities/Mailer.ts"
import { type Failures, jobsFailed, OutgoingMailStore } from "../../store/accounts/OutgoingMails.ts"

/** Recipient of the e-mails; null sends none. */
export class AlertRecipient extends Context.Tag("usecases/AlertRecipient")<AlertRecipient, string | null>() {}

/** Minimum interval between two e-mails about one queue, across all processes. */
const minAlertInterval = "5 minutes"

/** The same failures have the same id: the server may have taken a mail that it did not acknowledge in time. */
const idOf = ({ failed, ids, last, queue }: Failures) =>
  createHash("sha256")
    .update([queue, failed, DateTime.formatIso(last), ...ids].join("\n"))
    .digest("hex")
    .slice(0, 32)

const textOf = ({ failed, ids, queue }: Failures) =>
  [
    `${failed} ${failed === 1 ? "job" : "jobs"} of queue ${queue} failed for good and will not be tried again by themselves.`,
    "",
    `The latest: ${ids.join(", ")}`,
    "",
    `GET /api/operator/queues/${queue}/jobs?state=failed says why;`,
    `POST /api/operator/queues/${queue}/jobs/<id>/retry has one run again.`
  ].join("\n")

export class JobAlerts extends Effect.Service<JobAlerts>()("usecases/operations/JobAlerts", {
  effect: Effect.gen(function* () {
    const mailer = yield* Mailer
    const dedupe = yield* DedupeStore
    const mails = yield* OutgoingMailStore
    const recipient = yield* AlertRecipient

    const sendAlert = Effect.fn("JobAlerts.sendAlert")(function* (to: string, found: Failures) {
      if (!(yield* dedupe.claim(`alert:${found.queue}`, minAlertInterval))) return
      const kind = jobsFailed(found.queue)
      const id = yield* mails.insert({ tenantId: null, recipient: to, kind, createdAt: found.until })
      const subject = `Spoke: ${found.failed} failed in ${found.queue}`
      yield* mailer.send({ id: idOf(found), to, subject, text: textOf(found) }).pipe(
        Effect.flatMap(({ messageId }) => mails.markSent(id, messageId)),
        Effect.catchTag("MailerError", ({ message }) =>
          Effect.zipRight(
            Effect.logWarning("An alert could not be mailed", message),
            mails.markFailed(id, message)
          )
        )
      )
    })

    /** Reports failures since the last e-mail, one e-mail per queue. Does nothing without recipient or mail server. */
    const sweep = Effect.gen(function* () {
      if (recipient === null || !mailer.configured) return
      for (const found of yield* mails.failures) yield* sendAlert(recipient, found)
    }).pipe(Effect.withSpan("JobAlerts.sweep"))

    return { sweep } as const
  })
}) {}
