/**
 * Deliveries of messaging providers. The signature is verified on the raw bytes; then the body is parsed, queued
 * durably, and answered.
 */
import { createHash, timingSafeEqual } from "node:crypto"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import {
  type ChannelAdapter,
  ChannelAdapters,
  type ChannelRequest,
  type Normalized
} from "../../capabilities/ChannelAdapters.ts"
import { SecretBox } from "../../capabilities/SecretBox.ts"
import { invalidSignature } from "../../channels/Refusals.ts"
import type { Arrival, DeliveryResult, DeliveryStatus } from "../../domain/channels/Channel.ts"
import {
  Forbidden,
  NotConfigured,
  ServiceUnavailable,
  type Unauthorized,
  ValidationError,
  noSuch
} from "../../domain/Errors.ts"
import * as Json from "../../domain/Json.ts"
import { ChannelStore } from "../../store/channels/Channels.ts"
import { InboundEvents } from "../../store/channels/InboundEvents.ts"
import { accessOf } from "./ChannelAccess.ts"
import { ChannelSettings } from "./ChannelSettings.ts"
import * as GroupCommit from "./GroupCommit.ts"
import { DeliveryReceipts } from "./DeliveryReceipts.ts"

/** The verification request of a provider; any field may be missing. */
export interface Challenge {
  readonly mode: string | undefined
  readonly verifyToken: string | undefined
  readonly challenge: string | undefined
}

const digest = (text: string) => createHash("sha256").update(text).digest()

const noVerifyToken = () =>
  new NotConfigured({ message: "Webhooks of messaging providers need CHANNEL_VERIFY_TOKEN to be set." })
const wrongVerifyToken = () => new Forbidden({ message: "The subscription's mode or verify token is wrong." })
const unreadable = () =>
  new ValidationError({ message: "The body is not valid JSON, or is nested too deeply." })

const isCounted = ({ event }: Arrival) => event._tag === "Message"
const isEcho = ({ event }: Arrival) => event._tag === "Message" && event.kind === "echo"

const countsOf = (arrivals: ReadonlyArray<Arrival>, isNew: ReadonlyArray<boolean>): DeliveryResult => {
  const counted = isNew.filter((_, index) => arrivals.slice(index, index + 1).some(isCounted))
  const enqueued = counted.filter((isNew) => isNew).length
  const dedupedCount = counted.length - enqueued
  return { received: true, deduped: dedupedCount > 0, dedupedCount, enqueued }
}

type Refusal = NotConfigured | Unauthorized | ValidationError | ServiceUnavailable

export class WebhookIngress extends Effect.Service<WebhookIngress>()("usecases/channels/WebhookIngress", {
  scoped: Effect.gen(function* () {
    const settings = yield* ChannelSettings
    const adapters = yield* ChannelAdapters
    const box = yield* SecretBox
    const channels = yield* ChannelStore
    const inbox = yield* InboundEvents
    const receipts = yield* DeliveryReceipts
    const { add: accept, quietPeriod } = yield* GroupCommit.make(inbox.accept)

    /** Checks a subscription request and returns its challenge. */
    const challenge = Effect.fn("WebhookIngress.challenge")(function* (given: Challenge) {
      if (settings.verifyToken === null) return yield* noVerifyToken()
      const expected = digest(Redacted.value(settings.verifyToken))
      const matches = timingSafeEqual(digest(given.verifyToken ?? ""), expected)
      if (given.mode !== "subscribe" || !matches) return yield* wrongVerifyToken()
      if (given.challenge === undefined || given.challenge === "")
        return yield* new ValidationError({ message: "hub.challenge is missing." })
      return given.challenge
    })

    const isOwnEcho = ({ event }: Arrival) =>
      event._tag === "Message" && event.kind === "echo" ? receipts.isOwn(event) : Effect.succeed(false)

    /** Before the events are stored: a delivery that fails here is sent again, and repeats change nothing. */
    const recordStatuses = (statuses: ReadonlyArray<DeliveryStatus>) =>
      Effect.forEach(statuses, receipts.recordDelivery, { discard: true })

    /** Records the statuses, and returns the arrivals that are no echoes of messages that we sent. */
    const withoutOwnEchoes = (arrivals: ReadonlyArray<Arrival>, statuses: ReadonlyArray<DeliveryStatus>) =>
      Effect.zipRight(
        recordStatuses(statuses),
        Effect.filter(arrivals, (arrival) => Effect.map(isOwnEcho(arrival), (isOwn) => !isOwn))
      ).pipe(
        Effect.catchAllCause((cause) =>
          Effect.zipRight(Effect.logError("A delivery could not be read", cause), GroupCommit.notQueued())
        )
      )

    const parseBody = ({ body }: ChannelRequest) =>
      Either.mapLeft(Json.parse(new TextDecoder().decode(body)), unreadable)

    /** Parses a body after the adapter has verified its sender. */
    const parseDelivery = (
      adapter: ChannelAdapter,
      request: ChannelRequest
    ): Either.Either<unknown, Refusal> =>
      Either.flatMap(adapter.verify(request, null), () => parseBody(request))

    const acceptEvents = Effect.fn("WebhookIngress.acceptEvents")(function* (
      channel: string,
      { arrivals, ignored, statuses }: Normalized,
      size: number
    ) {
      if (ignored > 0)
        yield* Effect.logDebug("Items of a delivery were acknowledged only", { channel, ignored })
      const others = yield* withoutOwnEchoes(arrivals, statuses)
      const isNew = yield* Effect.async<ReadonlyArray<boolean>, ServiceUnavailable>((resume) =>
        accept(others, size, resume)
      )
      return countsOf(others, isNew)
    })

    /** Takes a delivery for an adapter whose accounts share an address. */
    const deliver = Effect.fn("WebhookIngress.deliver")(function* (
      adapter: ChannelAdapter,
      request: ChannelRequest
    ) {
      const body = yield* parseDelivery(adapter, request)
      return yield* acceptEvents(
        adapter.name,
        adapter.normalize(body, request.now, null),
        request.body.length
      )
    })

    /** The credentials of the account's only active configuration. */
    const accessOfAccount = Effect.fn("WebhookIngress.accessOfAccount")(function* (
      channel: string,
      account: string
    ) {
      const [found, ...others] = yield* channels.byAccount(channel, account)
      if (found === undefined || others.length > 0) return yield* invalidSignature()
      return yield* Effect.mapError(accessOf(box, found), invalidSignature)
    })

    /**
     * Takes a delivery for one account of an adapter whose accounts have their own addresses. Returns the challenge to
     * answer, or the counts of what was queued.
     */
    const deliverTo = Effect.fn("WebhookIngress.deliverTo")(function* (
      channel: string,
      account: string,
      request: ChannelRequest
    ) {
      const adapter = adapters.named(channel)
      if (adapter === null || adapter.webhook !== "account") return yield* noSuch("channel")
      const access = yield* accessOfAccount(channel, account)
      yield* adapter.verify(request, access)
      const body = yield* adapter.decode === undefined ? parseBody(request) : adapter.decode(request)
      const requestedChallenge = adapter.challenge?.(body) ?? Option.none()
      if (Option.isSome(requestedChallenge)) return requestedChallenge.value
      return yield* acceptEvents(channel, adapter.normalize(body, request.now, access), request.body.length)
    })

    /**
     * Like `deliver`, without a fiber per delivery: calls `done` and returns true. Returns false, without any effect,
     * when the delivery needs more than queueing.
     */
    const tryDeliver = (
      adapter: ChannelAdapter,
      request: ChannelRequest,
      done: (outcome: Exit.Exit<DeliveryResult, Refusal>) => void
    ): boolean => {
      const parsed = parseDelivery(adapter, request)
      if (Either.isLeft(parsed)) {
        done(Exit.fail(parsed.left))
        return true
      }
      const { arrivals, ignored, statuses } = adapter.normalize(parsed.right, request.now, null)
      if (ignored > 0 || statuses.length > 0 || arrivals.some(isEcho)) return false
      accept(arrivals, request.body.length, (outcome) =>
        done(Exit.map(outcome, (isNew) => countsOf(arrivals, isNew)))
      )
      return true
    }

    return {
      challenge,
      deliver,
      deliverTo,
      /** Adapters whose accounts share an address. */
      shared: adapters.all.filter(({ webhook }) => webhook === "app"),
      tryDeliver,
      /** Background work waits for this before it begins: a short pause in deliveries. */
      quietPeriod
    } as const
  })
}) {}
