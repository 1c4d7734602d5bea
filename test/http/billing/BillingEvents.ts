/** Events as the provider sends them, reduced to the fields that are read and a few others. */
let made = 0

/** `created` in seconds. */
export const event = (
  type: string,
  created: number,
  object: Readonly<Record<string, unknown>>,
  id = `evt_${++made}`
) => ({
  id,
  object: "event",
  api_version: "2026-10-28.endive",
  created,
  livemode: false,
  pending_webhooks: 1,
  request: { id: null, idempotency_key: null },
  type,
  data: { object }
})

/** April and May 2030. */
export const april = { start: 1_901_232_000, end: 1_903_824_000 }
export const may = { start: 1_903_824_000, end: 1_906_502_400 }

export interface SubscriptionFields {
  readonly id?: string
  readonly tenantId?: string
  readonly plan?: string
  readonly status?: string
  readonly period?: { readonly start: number; readonly end: number }
  readonly begun?: number
}

/** A subscription in the form since 2025, in which the items have the period. */
export const subscription = ({
  id = "sub_1",
  tenantId,
  plan = "pro",
  status = "active",
  period = april,
  begun = 1_000
}: SubscriptionFields) => ({
  id,
  object: "subscription",
  customer: "cus_1",
  created: begun,
  status,
  metadata: { plan, ...(tenantId === undefined ? {} : { tenantId }) },
  items: {
    object: "list",
    data: [
      {
        id: "si_1",
        object: "subscription_item",
        current_period_start: period.start,
        current_period_end: period.end
      }
    ]
  }
})

/** An invoice in the form since 2025, in which `parent` names the subscription. */
export const invoice = (subscribed = "sub_1", id = "in_1") => ({
  id,
  object: "invoice",
  parent: {
    type: "subscription_details",
    quote_details: null,
    subscription_details: { subscription: subscribed, metadata: {} }
  }
})

export const checkout = (
  tenantId: string,
  credits: string | undefined,
  changes: Readonly<Record<string, unknown>> = {}
) => ({
  id: "cs_1",
  object: "checkout.session",
  mode: "payment",
  payment_status: "paid",
  payment_intent: "pi_1",
  metadata: { tenantId, ...(credits === undefined ? {} : { credits }) },
  ...changes
})

export const charge = (amount: number, refunded: number, payment = "pi_1") => ({
  id: "ch_1",
  object: "charge",
  amount,
  amount_refunded: refunded,
  payment_intent: payment
})
