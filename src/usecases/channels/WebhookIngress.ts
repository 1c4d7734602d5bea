/**
 * What messaging providers deliver: verified on its bytes, then parsed, then queued
 * durably, then answered.
 */
import { createHash, timingSafeEqual } from "node:crypto"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Redacted from "effect/Redacted"
import { normalizers } from "../../channels/Inbound.ts"
import type { Normalized } from "../../channels/Normalized.ts"
import { isSigned } from "../../channels/Signature.ts"
import type { Arrival, Delivered, DeliveryStatus, MessagingChannel } from "../../domain/channels/Channel.ts"
import {
  Forbidden,
  NotConfigured,
  ServiceUnavailable,
  Unauthorized,
  ValidationError
} from "../../domain/Errors.ts"
import * as Json from "../../domain/Json.ts"
import { InboundEvents } from "../../store/channels/InboundEvents.ts"
import { ChannelSettings } from "./ChannelSettings.ts"
import * as GroupCommit from "./GroupCommit.ts"
import { DeliveryReceipts } from "./DeliveryReceipts.ts"

/** What a provider sends to find out whether an address is ours; any of them may be missing. */
export interface Challenge {
  readonly mode: string | undefined
  readonly verifyToken: string | undefined
  readonly challenge: string | undefined
}

const digest = (text: string) => createHash("sha256").update(text).digest()

const unverifiable = (variable: string) =>
  new NotConfigured({ message: `Webhooks of messaging providers need ${variable} to be set.` })
const mismatch = () =>
  new Forbidden({ message: "The subscription's mode or verify token is not the right one." })
const unsigned = () => new Unauthorized({ message: "The signature of the body is missing or wrong." })
const unreadable = () =>
  new ValidationError({ message: "The body is not valid JSON, or is nested too deeply." })
const unavailable = () => new ServiceUnavailable({ message: "Nothing could be queued. Deliver it again." })

const isCounted = ({ event }: Arrival) => event._tag === "Message"
const isEcho = ({ event }: Arrival) => event._tag === "Message" && event.kind === "echo"

const countsOf = (arrivals: ReadonlyArray<Arrival>, fresh: ReadonlyArray<boolean>): Delivered => {
  const counted = fresh.filter((_, place) => arrivals.slice(place, place + 1).some(isCounted))
  const enqueued = counted.filter((isNew) => isNew).length
  const dedupedCount = counted.length - enqueued
  return { received: true, deduped: dedupedCount > 0, dedupedCount, enqueued }
}

type Refusal = NotConfigured | Unauthorized | ValidationError | ServiceUnavailable

export class WebhookIngress extends Effect.Service<WebhookIngress>()("usecases/channels/WebhookIngress", {
  scoped: Effect.gen(function* () {
    const settings = yield* ChannelSettings
    const inbox = yield* InboundEvents
    const sent = yield* DeliveryReceipts
    const { add: accept, quietPeriod } = yield* GroupCommit.make(inbox.accept)

    /** The text to answer a subscription with. */
    const challenge = Effect.fn("WebhookIngress.challenge")(function* (given: Challenge) {
      if (settings.verifyToken === null) return yield* unverifiable("CHANNEL_VERIFY_TOKEN")
      const expected = digest(Redacted.value(settings.verifyToken))
      const matches = timingSafeEqual(digest(given.verifyToken ?? ""), expected)
      if (given.mode !== "subscribe" || !matches) return yield* mismatch()
      if (given.challenge === undefined || given.challenge === "")
        return yield* new ValidationError({ message: "hub.challenge is missing." })
      return given.challenge
    })

    const isOurs = ({ event }: Arrival) =>
      event._tag === "Message" && event.kind === "echo" ? sent.ours(event) : Effect.succeed(false)

    /** Before anything is marked as seen: what fails here is delivered again, and repeats change nothing. */
    const note = (statuses: ReadonlyArray<DeliveryStatus>) =>
      Effect.forEach(statuses, sent.delivered, { discard: true })

    const foreseen = (arrivals: ReadonlyArray<Arrival>, statuses: ReadonlyArray<DeliveryStatus>) =>
      Effect.zipRight(
        note(statuses),
        Effect.filter(arrivals, (arrival) => Effect.map(isOurs(arrival), (ours) => !ours))
      ).pipe(
        Effect.catchAllCause((cause) =>
          Effect.zipRight(Effect.logError("A delivery could not be looked into", cause), unavailable())
        )
      )

    /** What a body says that is signed as `signature` tells: parsed only then. */
    const open = (
      channel: MessagingChannel,
      signature: string | undefined,
      body: Uint8Array,
      now: DateTime.Utc
    ): Either.Either<Normalized, Refusal> => {
      if (settings.appSecret === null) return Either.left(unverifiable("CHANNEL_APP_SECRET"))
      if (!isSigned(settings.appSecret, signature, body)) return Either.left(unsigned())
      return Either.mapBoth(Json.parse(new TextDecoder().decode(body)), {
        onLeft: unreadable,
        onRight: (parsed) => normalizers[channel](parsed, now)
      })
    }

    /** `signature` is the header `x-hub-signature-256`. */
    const deliver = Effect.fn("WebhookIngress.deliver")(function* (
      channel: MessagingChannel,
      signature: string | undefined,
      body: Uint8Array
    ) {
      const { arrivals, ignored, statuses } = yield* open(channel, signature, body, yield* DateTime.now)
      if (ignored > 0)
        yield* Effect.logDebug("Items of a delivery were acknowledged only", { channel, ignored })
      const ours = yield* foreseen(arrivals, statuses)
      const fresh = yield* Effect.async<ReadonlyArray<boolean>, ServiceUnavailable>((resume) =>
        accept(ours, body.length, resume)
      )
      return countsOf(ours, fresh)
    })

    /**
     * As `deliver`, without a fiber for each: calls `done`, and returns true. False when the delivery needs more than to
     * be queued, and nothing has been done.
     */
    const take = (
      channel: MessagingChannel,
      signature: string | undefined,
      body: Uint8Array,
      now: DateTime.Utc,
      done: (outcome: Exit.Exit<Delivered, Refusal>) => void
    ): boolean => {
      const opened = open(channel, signature, body, now)
      if (Either.isLeft(opened)) {
        done(Exit.fail(opened.left))
        return true
      }
      const { arrivals, ignored, statuses } = opened.right
      if (ignored > 0 || statuses.length > 0 || arrivals.some(isEcho)) return false
      accept(arrivals, body.length, (outcome) =>
        done(Exit.map(outcome, (fresh) => countsOf(arrivals, fresh)))
      )
      return true
    }

    return {
      challenge,
      deliver,
      take,
      /** Background work waits for this before it begins: a short wait while deliveries are being accepted. */
      quietPeriod
    } as const
  })
}) {}
