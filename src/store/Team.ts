/** The users of one tenant, and the invitations to choose a password. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as SqlSchema from "@effect/sql/SqlSchema"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Role } from "../domain/Access.ts"
import type { TenantScope } from "../domain/Account.ts"
import { UserId } from "../domain/Ids.ts"
import { Member } from "../domain/Team.ts"
import type { Page } from "../domain/Page.ts"
import type { PageRequest } from "./Tenants.ts"

const Row = Schema.Struct({ ...Member.fields, createdAt: Schema.DateTimeUtcFromDate })
const Ids = Schema.Struct({ tenantId: Schema.String, id: Schema.String })
const Expiry = Schema.Struct({ expiresAt: Schema.DateTimeUtcFromDate })

export class TeamStore extends Effect.Service<TeamStore>()("store/Team", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    const columns = sql`
      u.id, u.tenant_id as "tenantId", u.email, u.role, u.created_at as "createdAt",
      exists (select 1 from user_invitations i where i.user_id = u.id and i.first) as invited`

    const selectPage = SqlSchema.findAll({
      Request: Schema.Struct({
        tenantId: Schema.String,
        limit: Schema.Int,
        after: Schema.NullOr(Schema.String)
      }),
      Result: Row,
      execute: ({ tenantId, limit, after }) => sql`
        select ${columns} from users u
        where u.tenant_id = ${tenantId} ${after === null ? sql`` : sql`and u.id > ${after}`}
        order by u.id limit ${limit}`
    })

    const selectOne = SqlSchema.findOne({
      Request: Ids,
      Result: Row,
      execute: ({ tenantId, id }) => sql`
        select ${columns} from users u where u.tenant_id = ${tenantId} and u.id = ${id}`
    })

    const selectOwners = SqlSchema.single({
      Request: Schema.String,
      Result: Schema.Struct({ owners: Schema.Int }),
      execute: (tenantId) => sql`
        select count(*)::int as owners from users where tenant_id = ${tenantId} and role = 'owner'`
    })

    const insertInvitation = SqlSchema.single({
      Request: Schema.Struct({
        fingerprint: Schema.Uint8ArrayFromSelf,
        userId: UserId,
        first: Schema.Boolean,
        seconds: Schema.Number
      }),
      Result: Expiry,
      execute: ({ fingerprint, userId, first, seconds }) => sql`
        insert into user_invitations as i (token_hash, user_id, first, expires_at)
        values (${fingerprint}, ${userId}, ${first}, now() + make_interval(secs => ${seconds}))
        on conflict (user_id) do update set token_hash = excluded.token_hash, expires_at = excluded.expires_at,
          first = i.first, created_at = now()
        returning i.expires_at as "expiresAt"`
    })

    const selectInvited = SqlSchema.findOne({
      Request: Schema.Uint8ArrayFromSelf,
      Result: Row,
      execute: (fingerprint) => sql`
        select ${columns} from user_invitations n join users u on u.id = n.user_id
        where n.token_hash = ${fingerprint} and n.expires_at > now()`
    })

    const redeemRow = SqlSchema.findOne({
      Request: Schema.Struct({ fingerprint: Schema.Uint8ArrayFromSelf, passwordHash: Schema.String }),
      Result: Schema.Struct({ id: UserId }),
      execute: ({ fingerprint, passwordHash }) => sql`
        with used as (
          delete from user_invitations where token_hash = ${fingerprint} and expires_at > now() returning user_id
        ),
        signed_out as (delete from user_sessions s using used where s.user_id = used.user_id)
        update users u set password_hash = ${passwordHash} from used where u.id = used.user_id returning u.id`
    })

    const UpdatedRole = Schema.Struct({ tenantId: Schema.String, id: Schema.String, role: Role })
    const updateRole = SqlSchema.void({
      Request: UpdatedRole,
      execute: ({ tenantId, id, role }) => sql`
        update users set role = ${role} where tenant_id = ${tenantId} and id = ${id}`
    })

    /** Oldest first. */
    const list = Effect.fn("TeamStore.list")(function* (
      { tenantId }: TenantScope,
      { limit, after }: PageRequest
    ) {
      const found = yield* selectPage({ tenantId, limit: limit + 1, after: after ?? null })
      const rows = found.slice(0, limit)
      const page: Page<Member> = { rows, next: found.length > limit ? (rows.at(-1)?.id ?? null) : null }
      return page
    }, Effect.orDie)

    const find = ({ tenantId }: TenantScope, id: UserId) => selectOne({ tenantId, id }).pipe(Effect.orDie)

    /** Owners of the tenant. Nobody else changes its team until the transaction around it ends. */
    const lockOwners = Effect.fn("TeamStore.lockOwners")(function* ({ tenantId }: TenantScope) {
      yield* sql`select id from tenants where id = ${tenantId} for no key update`
      return (yield* selectOwners(tenantId)).owners
    }, Effect.orDie)

    const setRole = ({ tenantId }: TenantScope, id: UserId, role: Role) =>
      updateRole({ tenantId, id, role }).pipe(Effect.orDie)

    /** With the sessions and the invitation. */
    const remove = ({ tenantId }: TenantScope, id: UserId) =>
      sql`delete from users where tenant_id = ${tenantId} and id = ${id}`.pipe(Effect.orDie, Effect.asVoid)

    /** Ends every session of the user. */
    const signOut = (id: UserId) =>
      sql`delete from user_sessions where user_id = ${id}`.pipe(Effect.orDie, Effect.asVoid)

    /** Replaces the user's invitation, if there is one; `first` when they have not chosen a password yet. */
    const invite = (invitation: {
      readonly fingerprint: Uint8Array
      readonly userId: UserId
      readonly first: boolean
      readonly lasts: Duration.Duration
    }) =>
      insertInvitation({ ...invitation, seconds: Duration.toSeconds(invitation.lasts) }).pipe(
        Effect.orDie,
        Effect.map(({ expiresAt }) => expiresAt)
      )

    /** Whose invitation it is. */
    const invited = (fingerprint: Uint8Array) => selectInvited(fingerprint).pipe(Effect.orDie)

    /** Uses the invitation up and ends the user's sessions; none when it is used or over. */
    const redeem = (fingerprint: Uint8Array, passwordHash: string) =>
      redeemRow({ fingerprint, passwordHash }).pipe(Effect.orDie)

    return { list, find, lockOwners, setRole, remove, signOut, invite, invited, redeem } as const
  })
}) {}
