/**
 * The identity of a program that uses the library: the owner of one tenant. It needs no key or session, so this
 * authentication must never be used behind a listener.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { randomBytes } from "node:crypto"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { workFor } from "../../concurrency/CurrentOwner.ts"
import { type Caller, hostKey, type SessionUser } from "../../domain/accounts/Access.ts"
import { ValidationError } from "../../domain/Errors.ts"
import { AgentId, TenantId, UserId } from "../../domain/Ids.ts"
import { AgentKeyAuth, CallerAuth, ManageAuth, OperatorAuth, SessionAuth } from "../../http/Auth.ts"
import { SameOrigin } from "../../http/hosted/accounts/SameOrigin.ts"
import { TenantGate } from "../../usecases/operations/moves/TenantGate.ts"
import type { Settings } from "../config/Config.ts"
import * as FirstOwner from "../FirstOwner.ts"

/** The agent that a request of the host uses. */
export class HostAgent extends Context.Reference<HostAgent>()("app/HostAgent", {
  defaultValue: () => Option.none<AgentId>()
}) {}

const Row = Schema.Struct({ id: UserId, tenantId: TenantId, email: Schema.String })
const decodeRows = Schema.decodeUnknown(Schema.Array(Row))

/** The first active owner of each tenant, or only of `tenant`; at most two. */
const owners = (tenant: string | undefined) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const rows = yield* sql`/* every tenant: directory */
      select distinct on (tenant_id) id, tenant_id as "tenantId", email from users
      where role = 'owner' and active and ${tenant === undefined ? sql`true` : sql`tenant_id = ${tenant}`}
      order by tenant_id, id limit 2`
    return yield* decodeRows(rows)
  }).pipe(Effect.orDie)

/** The owner of `tenant`; without it the owner of the only tenant, which is created when there is none. */
export const find = Effect.fn("Owner.find")(function* (settings: Settings, tenant: string | undefined) {
  const existing = yield* owners(tenant)
  if (existing.length === 0 && tenant === undefined) {
    const unknownPassword = () => Redacted.make(randomBytes(24).toString("base64url"))
    yield* FirstOwner.create(settings, Option.getOrElse(settings.admin.password, unknownPassword))
  }
  const [owner, second] = existing.length === 0 ? yield* owners(tenant) : existing
  if (owner === undefined) return yield* new ValidationError({ message: "There is no such tenant." })
  if (second !== undefined) {
    return yield* new ValidationError({ message: "The database has several tenants: name one as tenant." })
  }
  const { email, id: userId, tenantId } = owner
  const user: SessionUser = { userId, tenantId, email, role: "owner", session: null }
  return user
})

/**
 * Authenticates every request as `owner`. The caller has checked that the requested agent belongs to the tenant. Like
 * any other caller's, the requests work for the tenant, and wait or fail while it is moved.
 */
export const authentication = (owner: SessionUser) =>
  Layer.unwrapEffect(
    Effect.map(TenantGate, (gate) => {
      const enter = gate.enter(owner.tenantId)
      const user = Effect.as(enter, owner)
      return Layer.mergeAll(
        Layer.succeed(
          AgentKeyAuth,
          Effect.zipRight(
            enter,
            Effect.map(HostAgent, (agent) => ({
              keyId: hostKey,
              tenantId: owner.tenantId,
              agentId: Option.getOrElse(agent, () => AgentId.make("none")),
              permissions: ["*" as const],
              sourceScope: null
            }))
          )
        ),
        Layer.succeed(SessionAuth, user),
        Layer.succeed(ManageAuth, user),
        Layer.succeed(CallerAuth, Effect.as(enter, { _tag: "User", user: owner } satisfies Caller)),
        Layer.succeed(SameOrigin, Effect.void),
        Layer.succeed(OperatorAuth, Effect.as(workFor("operator"), { actor: "operator" as const }))
      )
    })
  )
