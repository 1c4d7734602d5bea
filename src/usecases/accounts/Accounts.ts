/** Tenants and the users who sign in for them. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Encoding from "effect/Encoding"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { Credentials } from "../../capabilities/Credentials.ts"
import type { SessionUser } from "../../domain/accounts/Access.ts"
import { type CreateTenant, type Login, User } from "../../domain/accounts/Account.ts"
import { selfHosted, Subscription } from "../../domain/agents/Agent.ts"
import { FairLimiter } from "../../concurrency/FairLimiter.ts"
import { Conflict, RateLimited, ServiceUnavailable, Unauthorized } from "../../domain/Errors.ts"
import { newId } from "../../domain/Ids.ts"
import { type Attempt, SessionStore } from "../../store/accounts/Sessions.ts"
import { SubscriptionStore } from "../../store/billing/Subscriptions.ts"
import { TenantStore } from "../../store/accounts/Tenants.ts"
import { UserStore } from "../../store/accounts/Users.ts"

/** Lifetime of a session. */
export const sessionLifetime = Duration.days(30)

/** After `failures` failed sign-ins to an account from one address within `window`, further ones are refused. */
export const signInThrottle = { failures: 10, window: Duration.minutes(15) }

/** Maximum concurrent sign-ins without a password, those of one network or tenant, and those that may wait. */
export const signInLimits = { permits: 64, maxPermitsPerOwner: 4, maxWaiting: 1_024 }

/** Maximum concurrent sign-ins to one account from one network; further ones wait. */
const maxConcurrentAttempts = 1
/** Maximum concurrent and maximum waiting sign-ins of all accounts and networks together. */
const maxAttempts = 4_096
const maxWaitingAttempts = 1_024

/** Owner of the work of hashing a new tenant's password: it is limited per tenant, and there is no tenant yet. */
const operator = "operator"

export const tooManySignIns = () =>
  new ServiceUnavailable({ message: "Too many people are signing in. Try again shortly." })

export const tooManyFailures = (wait: Duration.Duration) =>
  new RateLimited({
    message: "Too many failed sign-ins. Try again later.",
    details: { retryAfterSeconds: Math.max(1, Math.ceil(Duration.toSeconds(wait))) }
  })

export class Accounts extends Effect.Service<Accounts>()("usecases/accounts/Accounts", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const credentials = yield* Credentials
    const tenants = yield* TenantStore
    const users = yield* UserStore
    const subscriptions = yield* SubscriptionStore
    const sessions = yield* SessionStore
    const attempts = new FairLimiter({
      name: "sign-ins",
      permits: maxAttempts,
      maxPermitsPerOwner: maxConcurrentAttempts,
      maxWaiting: maxWaitingAttempts
    })

    /** Runs in the caller's transaction. Hashing is slow and happens before it, so that the transaction stays short. */
    const insertTenant = ({ name, owner }: CreateTenant, passwordHash: string) =>
      Effect.gen(function* () {
        const tenantId = yield* newId.tenant
        const userId = yield* newId.user
        const tenant = yield* tenants.insert({ id: tenantId, name })
        yield* subscriptions.put(
          { tenantId },
          Subscription.make({
            plan: "self-hosted",
            status: "active",
            period: null,
            entitlements: selfHosted
          })
        )
        const user = yield* users.insert(
          { tenantId },
          { id: userId, email: owner.email, role: "owner", passwordHash, passwordBy: null }
        )
        if (Option.isNone(user)) {
          return yield* new Conflict({ message: "Another user has this e-mail address." })
        }
        return { tenant, owner: user.value }
      })

    /**
     * Creates a tenant on plan `self-hosted` and its owner in one transaction. CONFLICT when the e-mail address is
     * taken.
     */
    const createTenant = Effect.fn("Accounts.createTenant")(function* (given: CreateTenant) {
      const passwordHash = yield* Effect.mapError(
        credentials.hashPassword(given.owner.password, operator),
        tooManySignIns
      )
      return yield* insertTenant(given, passwordHash).pipe(
        sql.withTransaction,
        Effect.catchTag("SqlError", Effect.die)
      )
    })

    /** {@link createTenant} when there is no user at all. Of several concurrent processes only one creates it. */
    const createFirst = Effect.fn("Accounts.createFirst")(function* (given: CreateTenant) {
      if (!(yield* users.isEmpty)) return false
      const passwordHash = yield* Effect.mapError(
        credentials.hashPassword(given.owner.password, operator),
        tooManySignIns
      )
      const creation = Effect.gen(function* () {
        yield* users.lock
        if (!(yield* users.isEmpty)) return false
        yield* insertTenant(given, passwordHash)
        return true
      })
      return yield* creation.pipe(sql.withTransaction, Effect.catchTag("SqlError", Effect.die))
    })

    /** Counts the failure. After the tenth one every attempt is refused for a while, even with the right password. */
    const refuse = Effect.fn("Accounts.refuse")(function* (attempt: Attempt) {
      const wait = yield* sessions.fail(attempt, signInThrottle.window, signInThrottle.failures)
      if (Option.isSome(wait)) return yield* tooManyFailures(wait.value)
      return yield* new Unauthorized({ message: "E-mail address or password is wrong." })
    })

    const notThrottled = (attempt: Attempt) =>
      Effect.flatMap(sessions.wait(attempt, signInThrottle.window, signInThrottle.failures), (wait) =>
        Option.isSome(wait) ? Effect.fail(tooManyFailures(wait.value)) : Effect.void
      )

    /** The account of the attempt, the hash of its password, and whether `password` is right. */
    const verify = Effect.fn("Accounts.verify")(function* (attempt: Attempt, password: Login["password"]) {
      const { address, email } = attempt
      yield* notThrottled(attempt)
      const account = yield* users.findByEmail(email)
      const hash = Option.match(account, { onNone: () => null, onSome: ({ passwordHash }) => passwordHash })
      const right = yield* Effect.mapError(
        credentials.verifyPassword(password, hash, address),
        tooManySignIns
      )
      return { account, hash, right }
    })

    /** Once the password is verified, a failure is counted even if the client has disconnected. */
    const openSession = Effect.fn("Accounts.openSession")(function* (
      attempt: Attempt,
      password: Login["password"],
      device: string | null,
      restore: <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E>
    ) {
      const { account, hash, right } = yield* restore(verify(attempt, password))
      if (!right || hash === null || Option.isNone(account)) return yield* refuse(attempt)
      // The same error as for a wrong password, so that it does not confirm a right one.
      if (!account.value.allowsPasswords) return yield* refuse(attempt)
      // Concurrent attempts may have used up the limit meanwhile.
      yield* notThrottled(attempt)
      const token = Redacted.make(yield* credentials.token)
      const { id, tenantId, role } = account.value
      const opened = yield* sessions.insert({
        fingerprint: yield* credentials.fingerprint(token),
        tenantId,
        userId: id,
        method: "password",
        passwordHash: hash,
        address: attempt.address,
        device,
        lifetime: sessionLifetime
      })
      if (!opened) return yield* refuse(attempt)
      return { user: User.make({ id, tenantId, email: account.value.email, role }), token }
    })

    /**
     * Opens a session for the user with that password. `network` is where the request came from. An unknown e-mail
     * address fails like a wrong password and takes the same work. Attempts on one account from one network run one at
     * a time, so that those beyond the tenth need no hash.
     */
    const signIn = Effect.fn("Accounts.signIn")(function* (
      { email, password }: Login,
      network: string,
      device: string | null = null
    ) {
      const attempt = { email, address: network }
      return yield* Effect.uninterruptibleMask((restore) =>
        openSession(attempt, password, device, restore)
      ).pipe(
        attempts.withPermit(`${network} ${email}`),
        Effect.catchTag("LimitReached", () => Effect.fail(tooManySignIns()))
      )
    })

    /** Ends the session, if it exists. */
    const signOut = Effect.fn("Accounts.signOut")(function* (token: Redacted.Redacted) {
      yield* sessions.remove(yield* credentials.fingerprint(token))
    })

    /** The user of the session. UNAUTHORIZED when the session does not exist or has ended. */
    const authenticate = Effect.fn("Accounts.authenticate")(function* (token: Redacted.Redacted) {
      const fingerprint = yield* credentials.fingerprint(token)
      const found = yield* sessions.findUser(fingerprint)
      if (Option.isNone(found)) return yield* new Unauthorized({ message: "Sign in first." })
      const { id, tenantId, email, role } = found.value
      const session = Encoding.encodeBase64Url(fingerprint)
      const user: SessionUser = { userId: id, tenantId, email, role, session }
      return user
    })

    return { createTenant, createFirst, listTenants: tenants.list, signIn, signOut, authenticate } as const
  })
}) {}
