/** The users of one tenant, and the invitations to choose a password. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { manages, Role } from "../../domain/accounts/Access.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { TenantId, UserId } from "../../domain/Ids.ts"
import { Member } from "../../domain/accounts/Team.ts"
import { toJsonb } from "../Jsonb.ts"
import type { PageRequest } from "./Tenants.ts"
import * as Rows from "../Rows.ts"

const Row = Schema.Struct({ ...Member.fields, createdAt: Schema.DateTimeUtcFromDate })
const Expiry = Schema.Struct({ expiresAt: Schema.DateTimeUtcFromDate })

/** Pairs `<role> <role that it manages>`, as JSON. */
const managedRoles = toJsonb(
  Role.literals.flatMap((by) =>
    Role.literals.filter((role) => manages(by, role)).map((role) => `${by} ${role}`)
  )
)

export class TeamStore extends Effect.Service<TeamStore>()("store/accounts/Team", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    const columns = sql`
      u.id, u.tenant_id as "tenantId", u.email, u.role, u.created_at as "createdAt", u.active,
      u.password_hash is null
        and not exists (select from user_identities i where i.tenant_id = u.tenant_id and i.user_id = u.id)
        and not exists (select from passkeys p where p.tenant_id = u.tenant_id and p.user_id = u.id) as invited`

    /** True where the member `by` may manage the member `u`, by their current roles. */
    const byManages = sql`
      by.active and by.role || ' ' || u.role in (select jsonb_array_elements_text(${managedRoles}::jsonb))`

    /** Invitations `i`, with the invited user `u` and the member `by` who made them. */
    const invitations = sql`
      user_invitations i join users u on u.tenant_id = i.tenant_id and u.id = i.user_id
      join users by on by.tenant_id = i.tenant_id and by.id = i.invited_by`
    const allowsPasswords = sql`
      u.active and not exists (select from sso_connections c where c.tenant_id = u.tenant_id and not c.allows_passwords)`
    /** True where the user `u` has a password, a passkey or an account at the provider to sign in with. */
    const canSignIn = sql`(
      u.password_hash is not null and ${allowsPasswords}
      or exists (select from passkeys p where p.tenant_id = u.tenant_id and p.user_id = u.id)
      or exists (
        select from user_identities d join sso_connections c on c.tenant_id = d.tenant_id and c.issuer = d.issuer
        where d.tenant_id = u.tenant_id and d.user_id = u.id
      )
    )`
    /** True where the invitation `i` can be used. */
    const isValidInvitation = sql`i.expires_at > now() and i.role = u.role and ${byManages} and ${allowsPasswords}`

    /** Oldest first. */
    const list = ({ tenantId }: TenantScope, { limit, after }: PageRequest) =>
      sql`
        select ${columns} from users u
        where u.tenant_id = ${tenantId} ${after === undefined ? sql`` : sql`and u.id > ${after}`}
        order by u.id limit ${limit + 1}`.pipe(Rows.page(Row, limit), Effect.withSpan("TeamStore.list"))

    const find = ({ tenantId }: TenantScope, id: UserId) =>
      sql`select ${columns} from users u where u.tenant_id = ${tenantId} and u.id = ${id}`.pipe(
        Rows.first(Row)
      )

    /** Locks the team until the transaction ends. */
    const lock = ({ tenantId }: TenantScope) =>
      sql`select id from tenants where id = ${tenantId} for no key update`.pipe(
        Rows.none,
        Effect.withSpan("TeamStore.lock")
      )

    /**
     * True for an active owner without whom no other owner could sign in. Invitations that this owner made do not
     * count, because they end with the owner. Needs the team's lock.
     */
    const isLastOwner = ({ tenantId }: TenantScope, id: UserId) =>
      sql`
        select from users l where l.tenant_id = ${tenantId} and l.id = ${id} and l.role = 'owner' and l.active and not exists (
          select from users u where u.tenant_id = l.tenant_id and u.id <> l.id and u.role = 'owner' and u.active and (
            ${canSignIn} or u.id in (
              select i.user_id from ${invitations}
              where i.tenant_id = ${tenantId} and i.invited_by <> ${id} and ${isValidInvitation}
            )
          )
        )`.pipe(Rows.any, Effect.withSpan("TeamStore.isLastOwner"))

    /** False if the tenant allows sign-in at its provider only. */
    const passwordsAllowed = ({ tenantId }: TenantScope) =>
      Effect.map(
        Rows.any(sql`select 1 from sso_connections where tenant_id = ${tenantId} and not allows_passwords`),
        (forbidden) => !forbidden
      )

    /** A separate statement, so that it sees the sessions committed before the lock was obtained. */
    const endSessions = ({ tenantId }: TenantScope, ids: ReadonlyArray<string>) =>
      sql`
        delete from user_sessions where tenant_id = ${tenantId} and user_id in (select jsonb_array_elements_text(${toJsonb(ids)}::jsonb))`

    /** Revokes access tokens of these users, because a person who knew a former password may have created them. */
    const revokeTokens = ({ tenantId }: TenantScope, ids: ReadonlyArray<string>) =>
      sql`
        update access_tokens set revoked_at = now() where tenant_id = ${tenantId} and revoked_at is null
          and user_id in (select jsonb_array_elements_text(${toJsonb(ids)}::jsonb))`

    /** Removes passkeys of these users, for the same reason. */
    const removePasskeys = ({ tenantId }: TenantScope, ids: ReadonlyArray<string>) =>
      sql`
        delete from passkeys where tenant_id = ${tenantId}
          and user_id in (select jsonb_array_elements_text(${toJsonb(ids)}::jsonb))`

    /**
     * Revokes what depends on a role that the user no longer has: invitations, passwords that members chose for others,
     * with their sessions, tokens and passkeys, and assignments to members who may not answer. Owners keep their
     * passwords if no other owner could sign in. Must be called after each change, in its transaction.
     */
    const revokeUngranted = Effect.fn("TeamStore.revokeUngranted")(function* ({ tenantId }: TenantScope) {
      yield* sql`
        delete from user_invitations where tenant_id = ${tenantId}
          and user_id not in (
            select i.user_id from ${invitations} where i.tenant_id = ${tenantId} and ${isValidInvitation})`
      const locked = yield* sql<{ readonly id: string }>`
        with ungranted as (
          select id, role from users where tenant_id = ${tenantId} and password_by is not null and id not in (
            select u.id from users u join users by on by.id = u.password_by and by.tenant_id = u.tenant_id
            where u.tenant_id = ${tenantId} and ${byManages})
        )
        update users set password_hash = null, password_by = null
        where tenant_id = ${tenantId} and id in (
          select id from ungranted where role <> 'owner' or exists (
            select from users u where u.tenant_id = ${tenantId} and u.role = 'owner' and u.active
              and u.id not in (select id from ungranted) and ${canSignIn}
          )
        )
        returning id`
      const ids = locked.map(({ id }) => id)
      yield* endSessions({ tenantId }, ids)
      yield* revokeTokens({ tenantId }, ids)
      yield* removePasskeys({ tenantId }, ids)
      // Otherwise nobody else would be told that a customer waits there.
      yield* sql`
        update conversations set assignee_id = null where tenant_id = ${tenantId} and assignee_id in (
          select id from users where tenant_id = ${tenantId} and (role = 'viewer' or not active))`
    }, Effect.orDie)

    const setRole = ({ tenantId }: TenantScope, id: UserId, role: Role) =>
      sql`update users set role = ${role} where tenant_id = ${tenantId} and id = ${id}`.pipe(Rows.none)

    /** Removes the user with the sessions, the invitation and the invitations that they made. */
    const remove = ({ tenantId }: TenantScope, id: UserId) =>
      sql`delete from users where tenant_id = ${tenantId} and id = ${id}`.pipe(Rows.none)

    /** Ends every session of these users. */
    const signOut = (scope: TenantScope, ...ids: ReadonlyArray<UserId>) => Rows.none(endSessions(scope, ids))

    /** Ends the user's access: sessions, access tokens, passkeys, the invitation. */
    const lockOut = Effect.fn("TeamStore.lockOut")(function* (scope: TenantScope, id: UserId) {
      const { tenantId } = scope
      yield* endSessions(scope, [id])
      yield* revokeTokens(scope, [id])
      yield* removePasskeys(scope, [id])
      yield* sql`delete from user_invitations where tenant_id = ${tenantId} and user_id = ${id}`
    }, Effect.orDie)

    /** Reverses a deactivation by the provider. */
    const activate = ({ tenantId }: TenantScope, id: UserId) =>
      sql`update users set active = true where tenant_id = ${tenantId} and id = ${id}`.pipe(Rows.none)

    /** Replaces the user's invitation, if there is one. */
    const invite = ({
      by,
      fingerprint,
      lifetime,
      role,
      tenantId,
      userId
    }: {
      readonly fingerprint: Uint8Array
      readonly tenantId: TenantId
      readonly by: UserId
      readonly userId: UserId
      /** The user's current role. */
      readonly role: Role
      readonly lifetime: Duration.Duration
    }) =>
      sql`
        insert into user_invitations as i (tenant_id, token_hash, user_id, invited_by, role, expires_at)
        values (${tenantId}, ${fingerprint}, ${userId}, ${by}, ${role},
          now() + make_interval(secs => ${Duration.toSeconds(lifetime)}))
        on conflict (tenant_id, user_id) do update set token_hash = excluded.token_hash, invited_by = excluded.invited_by,
          role = excluded.role, expires_at = excluded.expires_at, created_at = now()
        returning i.expires_at as "expiresAt"`.pipe(
        Rows.one(Expiry),
        Effect.map(({ expiresAt }) => expiresAt)
      )

    /** The invited member; none when the invitation is used, expired or void. */
    const findInvited = (fingerprint: Uint8Array) =>
      sql`/* every tenant: directory */
        select ${columns} from ${invitations} where i.token_hash = ${fingerprint} and ${isValidInvitation}`.pipe(
        Rows.first(Row)
      )

    /**
     * Uses the invitation, and ends the user's sessions, tokens and passkeys. False when it is used, expired or void.
     * Needs the team's lock.
     */
    const redeem = Effect.fn("TeamStore.redeem")(function* (fingerprint: Uint8Array, passwordHash: string) {
      const used = yield* sql`/* every tenant: directory */
        delete from user_invitations where (tenant_id, user_id) in (
          select i.tenant_id, i.user_id from ${invitations} where i.token_hash = ${fingerprint} and ${isValidInvitation}
        ) returning tenant_id as "tenantId", user_id as "userId"`.pipe(
        Rows.first(Schema.Struct({ tenantId: TenantId, userId: UserId }))
      )
      if (Option.isNone(used)) return false
      const { tenantId, userId } = used.value
      yield* sql`update users set password_hash = ${passwordHash}, password_by = null
        where tenant_id = ${tenantId} and id = ${userId}`
      yield* endSessions({ tenantId }, [userId])
      yield* revokeTokens({ tenantId }, [userId])
      yield* removePasskeys({ tenantId }, [userId])
      return true
    }, Effect.orDie)

    return {
      list,
      find,
      lock,
      isLastOwner,
      passwordsAllowed,
      revokeUngranted,
      setRole,
      remove,
      signOut,
      lockOut,
      activate,
      invite,
      findInvited,
      redeem
    } as const
  })
}) {}
