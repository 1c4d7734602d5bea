/** Sessions of the dashboard and the failed sign-ins that throttle it. Times are the database's, one clock for all processes. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as SqlSchema from "@effect/sql/SqlSchema"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { Email, User } from "../../domain/accounts/Account.ts"
import { SessionOrigin } from "../../domain/accounts/Session.ts"
import { UserId } from "../../domain/Ids.ts"

/** Who tries to sign in, and from where. */
export interface Attempt {
  readonly email: Email
  readonly address: string
}

const NewSession = Schema.Struct({
  fingerprint: Schema.Uint8ArrayFromSelf,
  userId: UserId,
  /** What it was checked against; null: the user signed in at a provider. */
  passwordHash: Schema.NullOr(Schema.String),
  ...SessionOrigin.fields,
  seconds: Schema.Number
})
type NewSession = Omit<typeof NewSession.Type, "seconds"> & { readonly lasts: Duration.Duration }

const Throttled = Schema.Struct({
  email: Email,
  address: Schema.String,
  seconds: Schema.Number,
  limit: Schema.Int
})

const Wait = Schema.Struct({ wait: Schema.Number })

export class SessionStore extends Effect.Service<SessionStore>()("store/accounts/Sessions", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    // The lock makes it wait for a change of the password that is under way, which ends the sessions of the old one.
    const insertRow = SqlSchema.findOne({
      Request: NewSession,
      Result: Schema.Struct({ userId: UserId }),
      execute: ({ address, device, fingerprint, passwordHash, seconds, userId }) => sql`
        with expired as (delete from user_sessions where expires_at <= now())
        insert into user_sessions (token_hash, user_id, expires_at, method, address, device)
        select ${fingerprint}::bytea, id, now() + make_interval(secs => ${seconds}),
          ${passwordHash === null ? "sso" : "password"}, ${address}::text, ${device}::text
        from users u where id = ${userId} and ${passwordHash === null ? sql`true` : sql`password_hash = ${passwordHash}`}
        for share returning user_id as "userId"`
    })

    const selectUser = SqlSchema.findOne({
      Request: Schema.Uint8ArrayFromSelf,
      Result: User,
      execute: (fingerprint) => sql`
        select u.id, u.tenant_id as "tenantId", u.email, u.role
        from user_sessions s join users u on u.id = s.user_id
        where s.token_hash = ${fingerprint} and s.expires_at > now()`
    })

    const selectWait = SqlSchema.findOne({
      Request: Throttled,
      Result: Wait,
      execute: ({ email, address, seconds, limit }) => sql`
        select extract(epoch from at + make_interval(secs => ${seconds}) - now())::float8 as wait
        from login_failures
        where email = ${email} and address = ${address} and at > now() - make_interval(secs => ${seconds})
        order by at desc, id desc offset ${limit - 1} limit 1`
    })

    /**
     * Opens a session of the user; expired sessions of all users are deleted on the way. False when the password of
     * `passwordHash` is no longer the user's.
     */
    const insert = ({ lasts, ...session }: NewSession) =>
      insertRow({ ...session, seconds: Duration.toSeconds(lasts) }).pipe(
        Effect.orDie,
        Effect.map(Option.isSome)
      )

    /** The user of a session that has not expired, as the user is now. */
    const findUser = (fingerprint: Uint8Array) => selectUser(fingerprint).pipe(Effect.orDie)

    const remove = (fingerprint: Uint8Array) =>
      sql`delete from user_sessions where token_hash = ${fingerprint}`.pipe(Effect.orDie, Effect.asVoid)

    /** How long until fewer than `limit` failures lie within `window`; none when that is now. */
    const wait = ({ email, address }: Attempt, window: Duration.Duration, limit: number) =>
      selectWait({ email, address, seconds: Duration.toSeconds(window), limit }).pipe(
        Effect.orDie,
        Effect.map(Option.map(({ wait }) => Duration.seconds(wait)))
      )

    /**
     * Records a failure, unless `limit` of them lie within `window` already: then how long the next attempt has to
     * wait. Attempts of one account and address are counted one after another, so that no two share the last place.
     */
    const fail = (attempt: Attempt, window: Duration.Duration, limit: number) =>
      Effect.gen(function* () {
        const { email, address } = attempt
        yield* sql`select pg_advisory_xact_lock(hashtextextended(${`${email} ${address}`}, 0))`
        const waiting = yield* wait(attempt, window, limit)
        if (Option.isSome(waiting)) return waiting
        yield* sql`
          with old as (
            delete from login_failures where id in (
              select id from login_failures where at <= now() - make_interval(secs => ${Duration.toSeconds(window)})
              order by at limit 1000 for update skip locked
            )
          )
          insert into login_failures (email, address) values (${email}, ${address})`
        return waiting
      }).pipe(sql.withTransaction, Effect.orDie, Effect.withSpan("SessionStore.fail"))

    return { insert, findUser, remove, wait, fail } as const
  })
}) {}
