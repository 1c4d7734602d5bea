/**
 * What messaging providers deliver (specification 4.19, 5.4 and 6): verified on its bytes, then parsed, then queued
 * durably, then answered.
 */
import { createHash, timingSafeEqual } from "node:crypto"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Body from "../../channels/Body.ts"
import { normalizers } from "../../channels/Inbound.ts"
import { isSigned } from "../../channels/Signature.ts"
import type { Arrival, Delivered, DeliveryStatus, MessagingChannel } from "../../domain/Channel.ts"
import {
  Forbidden,
  NotConfigured,
  ServiceUnavailable,
  Unauthorized,
  ValidationError
} from "../../domain/Errors.ts"
import { Inbox } from "../../store/Inbox.ts"
import { ChannelSettings } from "./ChannelSettings.ts"
import * as GroupCommit from "./GroupCommit.ts"
import { Sent } from "./Sent.ts"

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

export class Intake extends Effect.Service<Intake>()("usecases/channels/Intake", {
  scoped: Effect.gen(function* () {
    const settings = yield* ChannelSettings
    const inbox = yield* Inbox
    const sent = yield* Sent
    const accept = yield* GroupCommit.make(inbox.accept)

    /** The text to answer a subscription with. */
    const challenge = Effect.fn("Intake.challenge")(function* (given: Challenge) {
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

    /** `signature` is the header `x-hub-signature-256`; `body` is parsed only when it is right. */
    const deliver = Effect.fn("Intake.deliver")(function* (
      channel: MessagingChannel,
      signature: string | undefined,
      body: Uint8Array
    ) {
      if (settings.appSecret === null) return yield* unverifiable("CHANNEL_APP_SECRET")
      if (!isSigned(settings.appSecret, signature, body)) return yield* unsigned()
      const parsed = Body.parse(body)
      if (Option.isNone(parsed)) return yield* unreadable()
      const { arrivals, statuses, ignored } = normalizers[channel](parsed.value, yield* DateTime.now)
      if (ignored > 0)
        yield* Effect.logDebug("Items of a delivery were acknowledged only", { channel, ignored })
      const ours = yield* foreseen(arrivals, statuses)
      const fresh = yield* accept(ours, body.length)
      const counted = fresh.filter((_, place) => ours.slice(place, place + 1).some(isCounted))
      const enqueued = counted.filter((isNew) => isNew).length
      const dedupedCount = counted.length - enqueued
      return { received: true, deduped: dedupedCount > 0, dedupedCount, enqueued } satisfies Delivered
    })

    return { challenge, deliver } as const
  })
}) {}
