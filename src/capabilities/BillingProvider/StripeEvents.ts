/**
 * Decodes events of Stripe's webhooks into facts. Decoding is lenient, because accounts use API versions from different
 * years. Only needed fields must have their form.
 */
import * as DateTime from "effect/DateTime"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { BillingEvent, type Fact } from "../../domain/billing/Billing.ts"
import { TenantId } from "../../domain/Ids.ts"
import { sanitize, Text } from "../../domain/Text.ts"

const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optional(Schema.NullOr(schema))

const Envelope = Schema.Struct({
  id: Text.pipe(Schema.minLength(1), Schema.maxLength(255)),
  type: Schema.String,
  created: Schema.Int,
  data: Schema.Struct({ object: Schema.Unknown })
})

const Metadata = optional(Schema.Record({ key: Schema.String, value: Schema.Unknown }))
type Metadata = Readonly<Record<string, unknown>> | null | undefined

/** An id, or the whole object if the account expands it. */
const Reference = Schema.Union(Text, Schema.Struct({ id: Text }))
const idOf = (reference: typeof Reference.Type | null | undefined) =>
  typeof reference === "object" ? (reference?.id ?? null) : (reference ?? null)

const periodFields = { current_period_start: optional(Schema.Int), current_period_end: optional(Schema.Int) }
type PeriodFields = { readonly [K in keyof typeof periodFields]?: number | null | undefined }

const Subscription = Schema.Struct({
  id: Text,
  status: Text,
  created: optional(Schema.Int),
  metadata: Metadata,
  items: optional(Schema.Struct({ data: Schema.Array(Schema.Struct(periodFields)) })),
  ...periodFields
})

const Details = optional(Schema.Struct({ subscription: optional(Reference), metadata: Metadata }))
const Invoice = Schema.Struct({
  parent: optional(Schema.Struct({ subscription_details: Details })),
  /** In API versions before 2025. */
  subscription: optional(Reference),
  subscription_details: Details,
  metadata: Metadata
})

const Checkout = Schema.Struct({
  id: Text,
  payment_status: optional(Schema.String),
  payment_intent: optional(Reference),
  metadata: Metadata
})

const Charge = Schema.Struct({
  amount: Schema.Int,
  amount_refunded: Schema.Int,
  payment_intent: optional(Reference)
})

interface ReportedFact {
  readonly object: string
  readonly tenant: unknown
  readonly fact: Fact
}

/** The first value of `field` in the given metadata. */
const metadataField = (field: string, ...sources: ReadonlyArray<Metadata>): unknown =>
  sources.map((metadata) => metadata?.[field]).find((value) => value !== undefined && value !== "")

/** Seconds since 1970, in the range of years that every store can represent. */
const decodeSeconds = Schema.decodeUnknownOption(Schema.Int.pipe(Schema.between(0, 253_402_300_799)))
const dateOf = (seconds: number) => DateTime.unsafeMake(seconds * 1_000)

const periodOf = ({ current_period_end, current_period_start }: PeriodFields) =>
  Option.all({ start: decodeSeconds(current_period_start), end: decodeSeconds(current_period_end) }).pipe(
    Option.filter(({ end, start }) => start < end),
    Option.map(({ end, start }) => ({ start: dateOf(start), end: dateOf(end) }))
  )

const subscription =
  (ended: boolean) =>
  (object: unknown): Option.Option<ReportedFact> =>
    Option.map(Schema.decodeUnknownOption(Subscription)(object), (given) => {
      const plan = metadataField("plan", given.metadata)
      return {
        object: given.id,
        tenant: metadataField("tenantId", given.metadata),
        fact: {
          _tag: "Subscription",
          plan: typeof plan === "string" ? sanitize(plan) : null,
          status: given.status,
          period: Option.getOrNull(Option.firstSomeOf([...(given.items?.data ?? []), given].map(periodOf))),
          begun: given.created ?? 0,
          ended
        }
      }
    })

const invoice =
  (paid: boolean) =>
  (object: unknown): Option.Option<ReportedFact> =>
    Option.flatMap(Schema.decodeUnknownOption(Invoice)(object), (given) => {
      const details = given.parent?.subscription_details ?? given.subscription_details
      const subscribed = idOf(details?.subscription) ?? idOf(given.subscription)
      return Option.map(Option.fromNullable(subscribed), (id) => ({
        object: id,
        tenant: metadataField("tenantId", details?.metadata, given.metadata),
        fact: { _tag: "Invoice", paid }
      }))
    })

/** A count in decimal digits, as a string or a number; 0 for anything else, such as `0x10`, ` 7 ` or a list. */
const creditsOf = (value: unknown): number =>
  (typeof value === "string" || typeof value === "number") && /^[1-9]\d{0,9}$/.test(String(value))
    ? Number(value)
    : 0

/** A checkout does not describe a subscription; the subscription's own events do. */
const checkout = (object: unknown): Option.Option<ReportedFact> =>
  Option.flatMap(Schema.decodeUnknownOption(Checkout)(object), (given) => {
    const credits = creditsOf(metadataField("credits", given.metadata))
    const paid = given.payment_status === "paid" || given.payment_status === "no_payment_required"
    return paid && credits > 0
      ? Option.some({
          object: idOf(given.payment_intent) ?? given.id,
          tenant: metadataField("tenantId", given.metadata),
          fact: { _tag: "Purchase", credits }
        })
      : Option.none()
  })

const refund = (object: unknown): Option.Option<ReportedFact> =>
  Option.flatMap(Schema.decodeUnknownOption(Charge)(object), ({ amount, amount_refunded, payment_intent }) =>
    Option.map(Option.fromNullable(idOf(payment_intent)), (id) => ({
      object: id,
      tenant: undefined,
      fact: { _tag: "Refund", of: amount, refunded: Math.min(amount, amount_refunded) }
    }))
  )

/** By event type: its rank among events of the same second, and its decoder. */
const decoders: ReadonlyMap<
  string,
  readonly [rank: number, read: (object: unknown) => Option.Option<ReportedFact>]
> = new Map([
  ["customer.subscription.created", [0, subscription(false)]],
  ["customer.subscription.updated", [1, subscription(false)]],
  ["customer.subscription.paused", [2, subscription(false)]],
  ["customer.subscription.resumed", [3, subscription(false)]],
  ["invoice.payment_failed", [4, invoice(false)]],
  ["invoice.paid", [5, invoice(true)]],
  ["customer.subscription.deleted", [6, subscription(true)]],
  ["checkout.session.completed", [0, checkout]],
  ["checkout.session.async_payment_succeeded", [1, checkout]],
  ["charge.refunded", [2, refund]]
])

/** The event's fact. None for other types, thin events, and invalid objects. */
export const eventOf = (body: unknown): Option.Option<BillingEvent> =>
  Option.gen(function* () {
    const { created, data, id, type } = yield* Schema.decodeUnknownOption(Envelope)(body)
    const [rank, read] = yield* Option.fromNullable(decoders.get(type))
    const { fact, object, tenant } = yield* read(data.object)
    const tenantId = typeof tenant === "string" ? yield* Schema.decodeOption(TenantId)(tenant) : null
    return yield* Schema.decodeOption(Schema.typeSchema(BillingEvent))({
      id,
      created,
      rank,
      object,
      tenantId,
      fact
    })
  })
