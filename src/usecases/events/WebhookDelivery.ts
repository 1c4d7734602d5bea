/**
 * Sends events to their endpoints, as jobs of the queue `webhook-outbound`: at least once, with a stable id, those of
 * one conversation in order. A failed call is retried for three days.
 */
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as Schema from "effect/Schema"
import * as SqlClient from "@effect/sql/SqlClient"
import { AuditLog } from "../../capabilities/AuditLog.ts"
import { JobFailure, type QueueJob } from "../../capabilities/JobQueue.ts"
import { Mailer } from "../../capabilities/Mailer.ts"
import { OutboundHttp } from "../../capabilities/OutboundHttp.ts"
import { SecretBox } from "../../capabilities/SecretBox.ts"
import { type Webhook, WebhookId } from "../../domain/events/Webhook.ts"
import { TenantId } from "../../domain/Ids.ts"
import { retryAfter } from "../../domain/RetryAfter.ts"
import { retryDeadlocks } from "../../store/Deadlock.ts"
import { OutgoingMailStore } from "../../store/accounts/OutgoingMails.ts"
import {
  type Answer,
  type DeliveryKey,
  failuresBeforePause,
  type ClaimedDelivery,
  maxPause,
  WebhookDeliveryStore
} from "../../store/events/WebhookDeliveries.ts"
import { WebhookEndpointStore } from "../../store/events/WebhookEndpoints.ts"
import { signed } from "./Signature.ts"

/** Time-out of the whole call. */
const callTimeout = Duration.seconds(10)
/** Maximum bytes of a response that are read. */
const maxAnswerBytes = 64 * 1024
/** The kind names the event whose delivery disabled the webhook, so that a repeated job finds its mails. */
const mailKind = (eventId: string) => `webhook_disabled:${eventId}`

/** Pauses before the next attempt, by the number of failures. The last one is used for all further attempts. */
const pauses = [
  Duration.seconds(5),
  Duration.seconds(30),
  Duration.minutes(2),
  Duration.minutes(10),
  Duration.minutes(30),
  maxPause
] as const

const decode = Schema.decodeUnknown(
  Schema.Struct({ tenantId: TenantId, eventId: Schema.String, endpointId: WebhookId })
)

/** The pause, shortened by up to a fifth at random: deliveries that failed together are not repeated together. */
const pauseAfter = (failures: number) =>
  Effect.map(Random.nextRange(0.8, 1), (part) =>
    Duration.times(pauses[Math.min(failures, pauses.length) - 1] ?? pauses[0], part)
  )

/** The body of a delivery. */
export const bodyOf = ({ agentId, content, conversationId, createdAt, ids, type }: ClaimedDelivery) =>
  JSON.stringify({
    type,
    timestamp: DateTime.formatIso(createdAt),
    data: {
      ...(agentId === null ? {} : { agentId }),
      ...(conversationId === null ? {} : { conversationId }),
      ...ids,
      ...content
    }
  })

type DisabledReason = "gone" | "failing"

interface Outcome extends Answer {
  readonly isAccepted: boolean
  readonly isGone: boolean
  /** The pause that the endpoint requests. */
  readonly requestedPause: Option.Option<Duration.Duration>
}

const noAnswer = (error: string): Outcome => ({
  status: null,
  text: null,
  error,
  isAccepted: false,
  isGone: false,
  requestedPause: Option.none()
})

/** Null if the webhook is not disabled. */
const mailText = ({ disabledReason, url }: Webhook) =>
  disabledReason === null
    ? null
    : [
        `Events are no longer sent to ${url}.`,
        "",
        disabledReason === "gone"
          ? "It answered 410 Gone."
          : "Nothing that was sent there has been taken for three days.",
        "",
        "The dashboard shows under Webhooks what was tried. Make the webhook active again there when it can take events,",
        "and send again what it has missed."
      ].join("\n")

export class WebhookDelivery extends Effect.Service<WebhookDelivery>()("usecases/events/WebhookDelivery", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const store = yield* WebhookDeliveryStore
    const endpoints = yield* WebhookEndpointStore
    const box = yield* SecretBox
    const http = yield* OutboundHttp
    const audit = yield* AuditLog
    const mailer = yield* Mailer
    const mails = yield* OutgoingMailStore

    const call = Effect.fn("WebhookDelivery.call")(function* (eventId: string, delivery: ClaimedDelivery) {
      const opened = yield* Effect.forEach(delivery.secrets, (sealed) => box.open("webhook-secret", sealed))
      const secrets = opened.flatMap(Option.toArray)
      if (secrets.length === 0) return noAnswer("The webhook's secret cannot be opened.")
      const body = bodyOf(delivery)
      const now = yield* Clock.currentTimeMillis
      const headers = { ...signed(secrets, eventId, now, body), "content-type": "application/json" }
      return yield* http
        .fetch({
          url: delivery.url,
          method: "POST",
          headers,
          body,
          maxBytes: maxAnswerBytes,
          timeout: callTimeout,
          maxRedirects: 0
        })
        .pipe(
          Effect.map((response): Outcome => ({
            status: response.status,
            text: new TextDecoder().decode(response.body),
            error: null,
            isAccepted: response.status >= 200 && response.status < 300,
            isGone: response.status === 410,
            requestedPause: retryAfter(response.headers, now)
          })),
          Effect.catchTag("OutboundHttpError", ({ message, reason }) =>
            Effect.succeed(
              noAnswer(reason === "TooManyRedirects" ? "It redirects, which is not followed." : message)
            )
          )
        )
    })

    /** Stores the mails to the owners, in the transaction that disables the endpoint. */
    const storeMails = Effect.fn("WebhookDelivery.storeMails")(function* ({
      eventId,
      tenantId
    }: DeliveryKey) {
      if (!mailer.configured) return
      for (const recipient of yield* endpoints.owners({ tenantId }))
        yield* mails.insert({ tenantId, recipient, kind: mailKind(eventId) })
    })

    /** Sends the mails that are stored: also those of a worker that ended before it had sent them. */
    const sendMails = Effect.fn("WebhookDelivery.sendMails")(function* (key: DeliveryKey) {
      if (!mailer.configured) return
      const found = yield* mails.queued(key.tenantId, mailKind(key.eventId))
      if (found.length === 0) return
      const webhook = Option.getOrNull(yield* endpoints.find(key, key.endpointId))
      const text = webhook === null ? null : mailText(webhook)
      for (const { id, recipient } of found) {
        if (text === null) yield* mails.markFailed(id, "The webhook was changed before the mail was sent.")
        else
          yield* mailer.send({ id, to: recipient, subject: "Spoke: a webhook was disabled", text }).pipe(
            Effect.flatMap(({ messageId }) => mails.markSent(id, messageId)),
            Effect.catchTag("MailerError", ({ message }) => mails.markFailed(id, message))
          )
      }
    })

    /**
     * Disables the endpoint, with an audit entry and the mails to its owners. False when it was not active, or has
     * another address.
     */
    const disable = Effect.fn("WebhookDelivery.disable")(function* (
      key: DeliveryKey,
      delivery: ClaimedDelivery,
      reason: DisabledReason
    ) {
      const { endpointId, eventId, tenantId } = key
      if (!(yield* store.disable(delivery, endpointId, reason))) return false
      yield* audit.record({
        tenantId,
        actor: { type: "service", id: eventId },
        action: "webhook.disable",
        target: endpointId,
        requestId: eventId
      })
      yield* storeMails(key)
      return true
    })

    /**
     * Stores a failed call. Disables the endpoint in the same transaction if it is gone or has failed for too long, so
     * that no event is given up at an endpoint that stays active. None when the endpoint was removed or has another
     * address now.
     */
    const storeFailure = Effect.fn("WebhookDelivery.storeFailure")(
      function* (key: DeliveryKey, delivery: ClaimedDelivery, outcome: Outcome) {
        const pause = yield* pauseAfter(Math.max(1, delivery.failures + 2 - failuresBeforePause))
        const { isGone } = outcome
        const failed = yield* store.recordFailure(key, outcome, { isGone, pause, url: delivery.url })
        if (Option.isNone(failed)) return Option.none()
        const { isFailing, isOver } = failed.value
        const reason: DisabledReason | null = isGone ? "gone" : isFailing ? "failing" : null
        const disabled = reason !== null && (yield* disable(key, delivery, reason))
        return Option.some({ isOver: isOver || reason !== null, disabled })
      },
      sql.withTransaction,
      Effect.orDie,
      (storing) => retryDeadlocks(storing)
    )

    const recordFailure = Effect.fn("WebhookDelivery.recordFailure")(function* (
      key: DeliveryKey,
      delivery: ClaimedDelivery,
      outcome: Outcome
    ) {
      const stored = yield* storeFailure(key, delivery, outcome)
      if (Option.isNone(stored)) {
        return yield* new JobFailure({
          message: "The webhook was changed or removed during the call.",
          fatal: false,
          expected: true,
          retryAfter: Duration.seconds(1)
        })
      }
      const { disabled, isOver } = stored.value
      if (disabled) yield* sendMails(key)
      if (isOver) return
      const pause = yield* pauseAfter(delivery.attempts + 1)
      return yield* new JobFailure({
        message: outcome.error ?? `It answered ${outcome.status}.`,
        fatal: false,
        expected: true,
        retryAfter: Duration.max(
          pause,
          Option.getOrElse(outcome.requestedPause, () => Duration.zero)
        )
      })
    })

    /** Handles a job of `webhook-outbound`. Calls nobody for a delivery that is settled or gone. */
    const process = Effect.fn("WebhookDelivery.process")(function* (job: QueueJob) {
      const key = yield* Effect.orDie(decode(job.payload))
      const found = yield* store.take(key)
      // An earlier attempt may have ended before it had sent its mails.
      if (Option.isNone(found)) return yield* sendMails(key)
      const delivery = found.value
      if (!delivery.active) return yield* store.cancel(key, key.endpointId)
      if (delivery.listening) return
      if (delivery.pausedMs !== null) {
        const jitter = yield* Random.nextRange(0, 0.2)
        return yield* new JobFailure({
          message: "The webhook keeps failing; another delivery tries it first.",
          fatal: false,
          expected: true,
          retryAfter: Duration.millis(
            Math.min(Duration.toMillis(maxPause), 1_000 + delivery.pausedMs * (1 + jitter))
          )
        })
      }
      const outcome = yield* call(key.eventId, delivery)
      if (!outcome.isAccepted) return yield* recordFailure(key, delivery, outcome)
      // The deletion of an agent locks deliveries before their conversations.
      if (yield* retryDeadlocks(store.recordSuccess(key, outcome)))
        yield* store.retryNow(delivery, key.endpointId)
    })

    return { process, sweep: store.sweep } as const
  })
}) {}
