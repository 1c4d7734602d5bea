/** Users of a tenant, their sessions, and the operator's requests. */
import * as DateTime from "effect/DateTime"
import * as Schema from "effect/Schema"
import { optional } from "../Optional.ts"
import { Role } from "./Access.ts"
import { Entitlements } from "../agents/Agent.ts"
import { TenantId, UserId } from "../Ids.ts"
import { Text, trimmed } from "../Text.ts"
import { TimestampInput } from "../TimestampInput.ts"

/** Scope of everything that belongs to a tenant: the first argument of every query of the dashboard. */
export interface TenantScope {
  readonly tenantId: TenantId
}

/** Trimmed and lower-cased; `admin@localhost` is valid. */
export const Email = Text.pipe(
  Schema.compose(Schema.Trim),
  Schema.compose(Schema.Lowercase),
  Schema.maxLength(320),
  Schema.pattern(/^[^\s@]+@[^\s@]+$/, { message: () => "Expected an e-mail address" }),
  Schema.brand("Email")
)
export type Email = typeof Email.Type

const passwordLimit = 200
const password = (min: number) =>
  Schema.Redacted(Schema.String.pipe(Schema.minLength(min), Schema.maxLength(passwordLimit)))

/** A password: 8 to 200 characters. */
export const NewPassword = password(8)

/** A timestamp of the years 1970 to 9999, which every store and every client can represent. */
export const Moment = TimestampInput.pipe(
  Schema.filter((moment) => {
    const { year } = DateTime.toPartsUtc(moment)
    return (year >= 1970 && year <= 9999) || "Expected a time between the years 1970 and 9999"
  })
)

/** A dashboard user, in answers. */
export class User extends Schema.Class<User>("User")({
  id: UserId,
  tenantId: TenantId,
  email: Schema.String,
  role: Role
}) {}

/** Body of `POST /api/operator/tenants`. */
export const CreateTenant = Schema.Struct({
  name: trimmed(200),
  owner: Schema.Struct({ email: Email, password: NewPassword })
})
export type CreateTenant = typeof CreateTenant.Type

/** Body of `POST /api/auth/login`. */
export const Login = Schema.Struct({ email: Email, password: password(1) })
export type Login = typeof Login.Type

/** Body of `PUT /api/operator/tenants/:id/subscription`. Without `period`, the calendar month is used. */
export const PutSubscription = Schema.Struct({
  plan: trimmed(100),
  period: optional(
    Schema.Struct({ start: Moment, end: Moment }).pipe(
      Schema.filter(({ start, end }) => DateTime.lessThan(start, end) || "Expected start before end")
    )
  ),
  entitlements: Entitlements
})
export type PutSubscription = typeof PutSubscription.Type
