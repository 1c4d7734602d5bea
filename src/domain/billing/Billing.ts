/**
 * Events of the billing provider, and the state of a tenant that follows from them. Everything here is a function of
 * the set of events: order of arrival and repeats change nothing.
 */
import * as Option from "effect/Option"
import * as Order from "effect/Order"
import * as Schema from "effect/Schema"
import { Entitlements, Period } from "../agents/Agent.ts"
import { TenantId } from "../Ids.ts"
import { Text } from "../Text.ts"
import { Count } from "../Count.ts"

/** Maximum number of turns that one purchase may add. */
const maxCredits = 1_000_000_000

const SubscriptionFact = Schema.TaggedStruct("Subscription", {
  plan: Schema.NullOr(Text),
  /** The provider's status. */
  status: Text,
  period: Schema.NullOr(Period),
  /** Creation time of the subscription, in seconds. A tenant's newest subscription counts. */
  begun: Schema.Int,
  /** Whether it was deleted. */
  ended: Schema.Boolean
})
type SubscriptionFact = typeof SubscriptionFact.Type

const InvoiceFact = Schema.TaggedStruct("Invoice", { paid: Schema.Boolean })
const PurchaseFact = Schema.TaggedStruct("Purchase", {
  credits: Schema.Int.pipe(Schema.between(1, maxCredits))
})
const RefundFact = Schema.TaggedStruct("Refund", {
  /** The payment, and the amount refunded so far, in the same unit. */
  of: Schema.Int.pipe(Schema.positive()),
  refunded: Count
})
type RefundFact = typeof RefundFact.Type

/** The content of one event. */
export const Fact = Schema.Union(SubscriptionFact, InvoiceFact, PurchaseFact, RefundFact)
export type Fact = typeof Fact.Type

export const BillingEvent = Schema.Struct({
  id: Text,
  /** Seconds since 1970, by the provider's clock. */
  created: Schema.Int,
  /** Order of events of the same second. */
  rank: Schema.Int,
  /** The id of the subscription (for an invoice: its subscription), or of the payment. */
  object: Text,
  tenantId: Schema.NullOr(TenantId),
  fact: Fact
})
export type BillingEvent = typeof BillingEvent.Type

/** Plan names and their entitlements. */
export type Plans = ReadonlyMap<string, Entitlements>

/** Value of the setting SPOKE_PLANS. */
export const PlanTable = Schema.Record({
  key: Schema.String.pipe(Schema.minLength(1), Schema.maxLength(100)),
  value: Entitlements
})

/**
 * The state that follows from the provider's events. A `plan` of null is the default plan, "keep" the tenant's current
 * one.
 */
export interface SubscriptionState {
  readonly plan: string | null | "keep"
  readonly status: string
  readonly period: Period | null
  /** The events that decided it. */
  readonly decidedBy: ReadonlyArray<string>
}

/** By `created`, then rank, then id: never by arrival. */
const eventOrder = Order.combineAll<BillingEvent>([
  Order.mapInput(Order.number, ({ created }) => created),
  Order.mapInput(Order.number, ({ rank }) => rank),
  Order.mapInput(Order.string, ({ id }) => id)
])

const newest = <A extends BillingEvent>(events: ReadonlyArray<A>): A | undefined =>
  events.reduce<A | undefined>(
    (last, event) => (last === undefined || Order.greaterThan(eventOrder)(event, last) ? event : last),
    undefined
  )

type EventOf<T extends Fact["_tag"]> = BillingEvent & { readonly fact: Extract<Fact, { readonly _tag: T }> }
const isEventOf =
  <T extends Fact["_tag"]>(tag: T) =>
  (event: BillingEvent): event is EventOf<T> =>
    event.fact._tag === tag

/** Statuses with which the plan is granted. A late payment alone does not end it. */
const entitledStatuses = new Set(["active", "trialing", "past_due"])
/** Statuses that become `active` with a payment. */
const unpaidStatuses = new Set(["past_due", "unpaid", "incomplete"])

/** The status of a subscription. `since`: the invoices that the provider reported after it. */
const statusOf = ({ ended, status }: SubscriptionFact, since: ReadonlyArray<EventOf<"Invoice">>): string => {
  if (ended) return "canceled"
  const afterPayments = unpaidStatuses.has(status) && since.some(({ fact }) => fact.paid) ? "active" : status
  return entitledStatuses.has(afterPayments) && newest(since)?.fact.paid === false
    ? "past_due"
    : afterPayments
}

const byObject = (events: ReadonlyArray<BillingEvent>) => {
  const objects = new Map<string, Array<BillingEvent>>()
  for (const event of events) {
    const known = objects.get(event.object)
    if (known === undefined) objects.set(event.object, [event])
    else known.push(event)
  }
  return [...objects.values()]
}

/** A subscription or a payment that events are about. */
interface BilledObject {
  readonly events: ReadonlyArray<BillingEvent>
  /** The newest event that names the object's tenant. */
  readonly decidedBy: BillingEvent
}

/**
 * The objects that events have assigned to the tenant. The newest event that names a tenant decides who owns an object
 * now.
 */
const objectsOf = (events: ReadonlyArray<BillingEvent>, tenantId: TenantId) => {
  const objects = byObject(events).flatMap((all): ReadonlyArray<BilledObject> => {
    // A refund belongs to the tenant of its payment.
    const naming = all.filter((event) => event.tenantId !== null && event.fact._tag !== "Refund")
    const decidedBy = newest(naming)
    return decidedBy !== undefined && naming.some((event) => event.tenantId === tenantId)
      ? [{ events: all, decidedBy }]
      : []
  })
  return {
    owned: objects.filter(({ decidedBy }) => decidedBy.tenantId === tenantId).map((object) => object.events),
    /** Objects that now belong to another tenant. */
    lost: objects.filter(({ decidedBy }) => decidedBy.tenantId !== tenantId)
  }
}

interface Candidate {
  readonly snapshot: EventOf<"Subscription">
  readonly status: string
  readonly decidedBy: ReadonlyArray<string>
}

const candidateOf = (events: ReadonlyArray<BillingEvent>): Option.Option<Candidate> => {
  const snapshot = newest(events.filter(isEventOf("Subscription")))
  if (snapshot === undefined) return Option.none()
  const since = events
    .filter(isEventOf("Invoice"))
    .filter((invoice) => Order.greaterThan(eventOrder)(invoice, snapshot))
  return Option.some({
    snapshot,
    status: statusOf(snapshot.fact, since),
    decidedBy: [
      snapshot.id,
      ...Option.toArray(Option.map(Option.fromNullable(newest(since)), ({ id }) => id))
    ]
  })
}

/** Prefers a subscription that grants its plan, then the one that was created last. */
const preferred = Order.combineAll<Candidate>([
  Order.mapInput(Order.boolean, ({ status }) => entitledStatuses.has(status)),
  Order.mapInput(Order.number, ({ snapshot }) => snapshot.fact.begun),
  Order.mapInput(Order.string, ({ snapshot }) => snapshot.object)
])

/** The state of a tenant whose objects all belong to other tenants now. */
const stateWithoutObjects = (lost: ReadonlyArray<BilledObject>): Option.Option<SubscriptionState> => {
  const subscribed = lost.filter((object) => object.events.some(isEventOf("Subscription")))
  const decidedBy = (from: ReadonlyArray<BilledObject>) => from.map(({ decidedBy: { id } }) => id).toSorted()
  if (subscribed.length > 0) {
    return Option.some({
      plan: null,
      status: "canceled",
      period: null,
      decidedBy: decidedBy(subscribed)
    })
  }
  const invoiced = lost.filter((object) => object.events.some(isEventOf("Invoice")))
  return invoiced.length === 0
    ? Option.none()
    : Option.some({ plan: "keep", status: "active", period: null, decidedBy: decidedBy(invoiced) })
}

/**
 * The subscription state of the tenant from all events of its objects; none if there is no event about a subscription.
 */
export const subscriptionStateOf = (
  events: ReadonlyArray<BillingEvent>,
  tenantId: TenantId
): Option.Option<SubscriptionState> => {
  const { lost, owned } = objectsOf(events, tenantId)
  const [first, ...others] = owned.flatMap((all) => Option.toArray(candidateOf(all)))
  if (first !== undefined) {
    const { decidedBy, snapshot, status } = others.reduce(Order.max(preferred), first)
    const { period, plan } = snapshot.fact
    return Option.some(
      entitledStatuses.has(status)
        ? { plan, status, period, decidedBy }
        : { plan: null, status, period: null, decidedBy }
    )
  }
  const afterLoss = stateWithoutObjects(lost)
  const invoice = newest(owned.flat().filter(isEventOf("Invoice")))
  if (invoice === undefined || Option.exists(afterLoss, ({ plan }) => plan === null)) return afterLoss
  const status = invoice.fact.paid ? "active" : "past_due"
  return Option.some({ plan: "keep", status, period: null, decidedBy: [invoice.id] })
}

/** The whole turns that are left after a refund. Computed with BigInt, because the product may exceed a safe integer. */
const creditsAfterRefund = (credits: number, { of, refunded }: RefundFact): number =>
  Number((BigInt(credits) * BigInt(of - refunded)) / BigInt(of))

/** The turns that the tenant has bought and that were not refunded. Each payment counts once. */
export const creditsOf = (events: ReadonlyArray<BillingEvent>, tenantId: TenantId): number =>
  objectsOf(events, tenantId).owned.reduce((total, all) => {
    const purchase = newest(all.filter(isEventOf("Purchase")))
    if (purchase === undefined) return total
    const { credits } = purchase.fact
    const kept = all.filter(isEventOf("Refund")).map(({ fact }) => creditsAfterRefund(credits, fact))
    return total + Math.max(0, Math.min(credits, ...kept))
  }, 0)
