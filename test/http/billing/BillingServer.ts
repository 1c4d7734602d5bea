/** The webhooks of billing and e-mail, and the operator's routes, over real HTTP. The provider's own package signs events. */
import * as HttpApi from "@effect/platform/HttpApi"
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { createServer } from "node:http"
import { Stripe } from "stripe"
import * as SqlAudit from "../../../src/capabilities/AuditLog/Sql.ts"
import { layerStripe } from "../../../src/capabilities/BillingProvider/Stripe.ts"
import { layerScrypt } from "../../../src/capabilities/Credentials/Scrypt.ts"
import * as SqlKeys from "../../../src/capabilities/KeyStore/Sql.ts"
import * as DerivedKeys from "../../../src/capabilities/SecretBox/DerivedKeys.ts"
import { type Entitlements, selfHosted } from "../../../src/domain/agents/Agent.ts"
import * as Boundary from "../../../src/http/server/Boundary.ts"
import { EmailLogsApi } from "../../../src/http/hosted/accounts/EmailLogsApi.ts"
import { EmailLogsHandlers } from "../../../src/http/hosted/accounts/EmailLogsHandlers.ts"
import * as SessionAuth from "../../../src/http/hosted/accounts/SessionAuth.ts"
import * as SessionCookie from "../../../src/http/hosted/accounts/SessionCookie.ts"
import { SessionsApi } from "../../../src/http/hosted/accounts/SessionsApi.ts"
import { SessionsHandlers } from "../../../src/http/hosted/accounts/SessionsHandlers.ts"
import * as OperatorAuth from "../../../src/http/operator/OperatorAuth.ts"
import { TenantsApi } from "../../../src/http/operator/TenantsApi.ts"
import { TenantsHandlers } from "../../../src/http/operator/TenantsHandlers.ts"
import { BillingApi } from "../../../src/http/webhooks/BillingApi.ts"
import { BillingHandlers } from "../../../src/http/webhooks/BillingHandlers.ts"
import { EmailApi } from "../../../src/http/webhooks/EmailApi.ts"
import { EmailHandlers } from "../../../src/http/webhooks/EmailHandlers.ts"
import { BillingEventStore } from "../../../src/store/billing/BillingEvents.ts"
import type { Database } from "../../../src/store/Database.ts"
import { EmailDeliveryStore } from "../../../src/store/accounts/EmailDeliveries.ts"
import { SessionStore } from "../../../src/store/accounts/Sessions.ts"
import { SubscriptionStore } from "../../../src/store/billing/Subscriptions.ts"
import { TenantStore } from "../../../src/store/accounts/Tenants.ts"
import { UserStore } from "../../../src/store/accounts/Users.ts"
import { Accounts } from "../../../src/usecases/accounts/Accounts.ts"
import { AuditTrail } from "../../../src/usecases/accounts/AuditTrail.ts"
import { Billing, PlanTable } from "../../../src/usecases/billing/Billing.ts"
import { EmailDeliveries } from "../../../src/usecases/accounts/EmailDeliveries.ts"
import { Subscriptions } from "../../../src/usecases/billing/Subscriptions.ts"
import { appUrl, type Call, call, operate, operatorToken, password } from "../accounts/AccountsServer.ts"
import { openGate } from "../OpenGate.ts"

export const secret = "whsec_canary_of_these_tests"

export const pro: Entitlements = {
  publicApi: true,
  turns: 3,
  ingestionJobs: 20,
  sources: 10,
  overageEnabled: false
}
export const free: Entitlements = {
  publicApi: false,
  turns: 1,
  ingestionJobs: 1,
  sources: 1,
  overageEnabled: false
}

export const planTable = Layer.succeed(PlanTable, {
  plans: new Map([
    ["self-hosted", selfHosted],
    ["pro", pro],
    ["free", free]
  ]),
  defaultPlan: "free"
})

const scrypt = layerScrypt({ log2N: 10, r: 8, p: 1 })
const keys = Layer.provide(SqlKeys.layerSql, scrypt)

/** The use-case with its dependencies, with the database of the context. */
export const billing = (given: string | null = secret) =>
  Billing.Default.pipe(
    Layer.provide(planTable),
    Layer.provide(layerStripe(Option.map(Option.fromNullable(given), Redacted.make))),
    Layer.provideMerge(Layer.mergeAll(keys, SubscriptionStore.Default, BillingEventStore.Default))
  )

const Surface = HttpApi.make("spoke")
  .add(TenantsApi)
  .add(SessionsApi)
  .add(BillingApi)
  .add(EmailApi)
  .add(EmailLogsApi)

const useCases = Layer.mergeAll(
  Accounts.Default,
  AuditTrail.Default,
  EmailDeliveries.Default,
  Subscriptions.Default
).pipe(
  Layer.provide(Layer.mergeAll(SqlAudit.layerSql, keys)),
  Layer.provide(scrypt),
  Layer.provide(
    Layer.mergeAll(
      EmailDeliveryStore.Default,
      SessionStore.Default,
      SubscriptionStore.Default,
      TenantStore.Default,
      UserStore.Default
    )
  )
)

export interface Options {
  /** Null: no secret is configured. */
  readonly secret?: string | null
  readonly billing?: Layer.Layer<Billing, never, Database>
}

export const billingServer = (options: Options = {}) =>
  HttpApiBuilder.serve().pipe(
    Layer.provide(Boundary.layer),
    Layer.provide(
      Layer.provide(
        HttpApiBuilder.api(Surface),
        Layer.mergeAll(
          TenantsHandlers,
          SessionsHandlers,
          BillingHandlers,
          EmailHandlers,
          EmailLogsHandlers
        ).pipe(
          Layer.provide(SessionAuth.layer(Surface, appUrl).pipe(Layer.provide(openGate))),
          Layer.provide(SessionCookie.layer(appUrl)),
          Layer.provide(OperatorAuth.layer(Option.some(Redacted.make(operatorToken)))),
          Layer.provide(DerivedKeys.layer([Redacted.make("a master secret of the tests, long enough")]))
        )
      )
    ),
    Layer.provide(useCases),
    Layer.provide(options.billing ?? billing(options.secret === undefined ? secret : options.secret)),
    Layer.provideMerge(NodeHttpServer.layer(() => createServer(), { port: 0, host: "127.0.0.1" }))
  )

/** The signature header of the provider; `at` is in seconds. */
export const signatureOf = (payload: string, key = secret, at = Math.floor(Date.now() / 1_000)) =>
  Stripe.webhooks.generateTestHeaderString({ payload, secret: key, timestamp: at })

/** Sends one signed event, by default with the documented name of the header. */
export const send = (
  event: unknown,
  options: { readonly header?: string; readonly signature?: string } = {}
) => {
  const raw = typeof event === "string" ? event : JSON.stringify(event)
  return call("POST", "/api/webhooks/billing", {
    raw,
    headers: { [options.header ?? "billing-signature"]: options.signature ?? signatureOf(raw) }
  })
}

export const postEmailEvents = (body: unknown, options: Call = {}) =>
  call("POST", "/api/webhooks/email", { body, ...options })

export const makeTenant = (email = "owner@example.com") =>
  Effect.map(
    operate("POST", "/api/operator/tenants", { body: { name: "Shop", owner: { email, password } } }),
    (made): string => made.data.tenant.id
  )

export const subscriptionOf = (tenantId: string) =>
  Effect.map(operate("GET", `/api/operator/tenants/${tenantId}/subscription`), ({ data }) => data)

/** The ids of stored events. */
export const storedEventIds = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql<{ readonly id: string }>`select id from billing_events order by id`
).pipe(Effect.map((rows) => rows.map(({ id }) => id)))
