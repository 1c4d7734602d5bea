/**
 * Sessions of the dashboard, and failed sign-ins for throttling. Times are the database's, one clock for all processes.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { Email, type TenantScope, User } from "../../domain/accounts/Account.ts"
import { Session, type SessionOrigin, type SignInId, SignInMethod } from "../../domain/accounts/Session.ts"
import { TenantId, UserId } from "../../domain/Ids.ts"
import * as Rows from "../Rows.ts"

/** A sign-in attempt: the account and the client's address. */
export interface Attempt {
  readonly email: Email
  readonly address: string
}

interface NewSession extends Schema.Schema.Type<typeof SessionOrigin> {
  readonly fingerprint: Uint8Array
  readonly tenantId: TenantId
  readonly userId: UserId
  readonly method: SignInMethod
  /** The hash it was checked against; null without a password. */
  readonly passwordHash: string | null
  readonly lifetime: Duration.Duration
}

const Row = Schema.Struct({
  ...Session.fields,
  usedAt: Schema.DateTimeUtcFromDate,
  createdAt: Schema.DateTimeUtcFromDate,
  expiresAt: Schema.DateTimeUtcFromDate
})
/** Maximum number of expired sessions that one sign-in deletes. */
const maxRemoved = 100
/** Maximum number of sessions in a list. */
const maxListed = 100

const Wait = Schema.Struct({ wait: Schema.Number })

export class SessionStore extends Effect.Service<SessionStore>()("store/accounts/Sessions", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    /**
     * Opens a session of the user, and deletes some expired sessions of all users. False when `passwordHash` is no longer
     * the user's.
     */
    const insert = (session: NewSession) =>
      // The lock waits for a concurrent change of the password, which ends the sessions of the old one.
      sql`/* every tenant: sweep */
        with old as materialized (
          select tenant_id, token_hash from user_sessions where expires_at <= now() and tenant_is_swept(tenant_id)
          order by expires_at limit ${maxRemoved}::int for update skip locked
        ), expired as (
          delete from user_sessions s using old where (s.tenant_id, s.token_hash) = (old.tenant_id, old.token_hash)
        )
        insert into user_sessions (tenant_id, token_hash, user_id, expires_at, method, address, device)
        select u.tenant_id, ${session.fingerprint}::bytea, id,
          now() + make_interval(secs => ${Duration.toSeconds(session.lifetime)}),
          ${session.method}, ${session.address}::text, ${session.device}::text
        from users u where u.tenant_id = ${session.tenantId} and u.id = ${session.userId} and u.active
          and ${session.passwordHash === null ? sql`true` : sql`password_hash = ${session.passwordHash}`}
        for share returning user_id as "userId"`.pipe(Rows.any)

    /** The user of a session that has not expired, with current data. */
    const findUser = (fingerprint: Uint8Array) =>
      // Updates the time of use at most once a minute. It skips the row if another request is writing it.
      sql`/* every tenant: directory */
        with noted as (
          update user_sessions set used_at = now() where token_hash in (
            select token_hash from user_sessions
            where token_hash = ${fingerprint} and used_at < now() - interval '1 minute' for update skip locked
          )
        )
        select u.id, u.tenant_id as "tenantId", u.email, u.role
        from user_sessions s join users u on u.tenant_id = s.tenant_id and u.id = s.user_id
        where s.token_hash = ${fingerprint} and s.expires_at > now() and u.active and (s.method <> 'password' or not exists (
          select from sso_connections c where c.tenant_id = u.tenant_id and not c.allows_passwords))`.pipe(
        Rows.first(User)
      )

    /**
     * Sessions of a user, the last used first; at most {@link maxListed}. `own` is the fingerprint of the caller's
     * session.
     */
    const list = ({ tenantId }: TenantScope, userId: UserId, own: Uint8Array | null) =>
      sql`
        select s.id, s.method, s.address, s.device, s.token_hash is not distinct from ${own}::bytea as current,
          s.used_at as "usedAt", s.created_at as "createdAt", s.expires_at as "expiresAt"
        from user_sessions s
        where s.tenant_id = ${tenantId} and s.user_id = ${userId} and s.expires_at > now()
        order by s.used_at desc, s.id limit ${maxListed}`.pipe(
        Rows.all(Row),
        Effect.withSpan("SessionStore.list")
      )

    /** Whether the session of `fingerprint` is the user's and has not ended. */
    const isOpen = ({ tenantId }: TenantScope, userId: UserId, fingerprint: Uint8Array) =>
      sql`
        select id from user_sessions
        where tenant_id = ${tenantId} and user_id = ${userId} and token_hash = ${fingerprint}::bytea
          and expires_at > now()`.pipe(Rows.any)

    /** False when the user has no such session. */
    const end = ({ tenantId }: TenantScope, userId: UserId, id: SignInId) =>
      sql`
        delete from user_sessions
        where tenant_id = ${tenantId} and user_id = ${userId} and id = ${id} returning id`.pipe(
        Rows.any,
        Effect.withSpan("SessionStore.end")
      )

    /** Ends all sessions of a user but `own`; returns their number. */
    const endOthers = ({ tenantId }: TenantScope, userId: UserId, own: Uint8Array | null) =>
      sql`
        delete from user_sessions
        where tenant_id = ${tenantId} and user_id = ${userId}
          and token_hash is distinct from ${own}::bytea returning id`.pipe(
        Effect.orDie,
        Effect.map((rows) => rows.length),
        Effect.withSpan("SessionStore.endOthers")
      )

    const remove = (fingerprint: Uint8Array) =>
      sql`/* every tenant: directory */ delete from user_sessions where token_hash = ${fingerprint}`.pipe(
        Rows.none
      )

    /**
     * The time until fewer than `limit` failures are within `window`; none if there are fewer now. A failure of the far
     * future, from when the clock was ahead, does not count.
     */
    const wait = ({ email, address }: Attempt, window: Duration.Duration, limit: number) => {
      const period = sql`make_interval(secs => ${Duration.toSeconds(window)})`
      return sql`
        select extract(epoch from at + ${period} - now())::float8 as wait from login_failures
        where email = ${email} and address = ${address} and at > now() - ${period} and at <= now() + ${period}
        order by at desc, id desc offset ${limit - 1} limit 1`.pipe(
        Rows.first(Wait),
        Effect.map(Option.map(({ wait }) => Duration.seconds(wait)))
      )
    }

    /**
     * Records a failure. If there are already `limit` failures within `window`, it returns the time to wait before the
     * next attempt instead. Attempts of one account and address are serialized, so that two cannot both use the last
     * place.
     */
    const fail = (attempt: Attempt, window: Duration.Duration, limit: number) =>
      Effect.gen(function* () {
        const { email, address } = attempt
        yield* sql`select pg_advisory_xact_lock(hashtextextended(${`${email} ${address}`}, 0))`
        const waiting = yield* wait(attempt, window, limit)
        if (Option.isSome(waiting)) return waiting
        yield* sql`
          with old as (
            delete from login_failures where id = any (array(
              select id from login_failures where at <= now() - make_interval(secs => ${Duration.toSeconds(window)})
              order by at limit 1000 for update skip locked
            ))
          )
          insert into login_failures (email, address) values (${email}, ${address})`
        return waiting
      }).pipe(sql.withTransaction, Effect.orDie, Effect.withSpan("SessionStore.fail"))

    return { insert, findUser, list, isOpen, end, endOthers, remove, wait, fail } as const
  })
}) {}
