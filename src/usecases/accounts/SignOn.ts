/** Sign-in through a tenant's identity provider, and the user that it leads to. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { Credentials } from "../../capabilities/Credentials.ts"
import {
  type IdentityClaims,
  IdentityProvider,
  IdentityProviderError
} from "../../capabilities/IdentityProvider.ts"
import { SecretBox } from "../../capabilities/SecretBox.ts"
import { withOwner } from "../../concurrency/CurrentOwner.ts"
import { FairLimiter } from "../../concurrency/FairLimiter.ts"
import { atLeast } from "../../domain/accounts/Access.ts"
import { Email, type TenantScope, User } from "../../domain/accounts/Account.ts"
import type { SessionOrigin } from "../../domain/accounts/Session.ts"
import {
  domainOf,
  roleOf,
  type SignOnAuthorizationResponse,
  SignOnProblem,
  signedInRoleOf
} from "../../domain/accounts/SingleSignOn.ts"
import { NotFound, ServiceUnavailable } from "../../domain/Errors.ts"
import { newId, TenantId } from "../../domain/Ids.ts"
import { SessionStore } from "../../store/accounts/Sessions.ts"
import { SingleSignOnStore, type StoredConnection } from "../../store/accounts/SingleSignOn.ts"
import { TeamStore } from "../../store/accounts/Team.ts"
import { UserStore } from "../../store/accounts/Users.ts"
import { sessionLifetime, signInLimits, tooManySignIns } from "./Accounts.ts"
import { AuditTrail } from "./AuditTrail.ts"

/** Time from the start of a sign-in to its end. */
export const flowLifetime = Duration.minutes(10)

/** The sealed state that the browser keeps during the sign-in. */
const Flow = Schema.parseJson(
  Schema.Struct({
    tenantId: TenantId,
    issuer: Schema.String,
    clientId: Schema.String,
    state: Schema.String,
    nonce: Schema.String,
    verifier: Schema.String,
    until: Schema.Number
  })
)
const encodeFlow = Schema.encode(Flow)
const decodeFlow = Schema.decodeOption(Flow)
const decodeEmail = Schema.decodeUnknownOption(Email)

/** The sign-in failed. `problem` is shown to the person; the log has the details. */
export class SignOnRefused extends Schema.TaggedError<SignOnRefused>()("SignOnRefused", {
  problem: SignOnProblem
}) {}
const refused = (problem: SignOnProblem) => new SignOnRefused({ problem })

/** The request with which a browser returns from the provider. */
interface CallbackRequest {
  readonly requestId: string
  readonly origin: typeof SessionOrigin.Type
}

const problemOfReason = { Denied: "denied", Unavailable: "provider", Invalid: "provider" } as const

const noSignOn = () => new NotFound({ message: "There is no single sign-on for this address." })
const unavailable = () =>
  new ServiceUnavailable({ message: "The sign-in page of your organisation cannot be reached right now." })
const unreadableSecret = () =>
  new IdentityProviderError({
    reason: "Unavailable",
    message: "The client secret cannot be opened, as it was sealed with another SPOKE_SECRET. Set it again."
  })
export class SignOn extends Effect.Service<SignOn>()("usecases/accounts/SignOn", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const box = yield* SecretBox
    const credentials = yield* Credentials
    const provider = yield* IdentityProvider
    const connections = yield* SingleSignOnStore
    const sessions = yield* SessionStore
    const team = yield* TeamStore
    const users = yield* UserStore
    const audit = yield* AuditTrail
    const limiter = new FairLimiter({ name: "single-sign-ons", ...signInLimits })

    const clientOf = Effect.fn("SignOn.clientOf")(function* (
      connection: StoredConnection,
      redirectUri: string
    ) {
      const { clientId, groupRoles, groupsClaim, issuer } = connection
      const secret = yield* box.open("sso-secret", connection.clientSecret)
      if (Option.isNone(secret)) return yield* unreadableSecret()
      return {
        issuer,
        clientId,
        clientSecret: Redacted.make(secret.value),
        redirectUri,
        groupsClaim: groupRoles.length === 0 ? null : groupsClaim
      }
    })

    const logFailure = (tenantId: TenantId) => (error: IdentityProviderError) =>
      Effect.logWarning("A single sign-on failed", { tenantId, reason: error.reason, problem: error.message })

    const beginFlow = Effect.fn("SignOn.beginFlow")(function* (email: Email, redirectUri: string) {
      const tenant = yield* connections.tenantOf(domainOf(email))
      if (Option.isNone(tenant)) return yield* noSignOn()
      const { tenantId } = tenant.value
      const connection = yield* connections.find({ tenantId })
      if (Option.isNone(connection)) return yield* noSignOn()
      const { clientId, issuer } = connection.value
      const { flow, url } = yield* clientOf(connection.value, redirectUri).pipe(
        Effect.flatMap((client) => provider.begin(client, email)),
        withOwner(tenantId),
        Effect.tapError(logFailure(tenantId)),
        Effect.mapError(unavailable)
      )
      const until = (yield* Clock.currentTimeMillis) + Duration.toMillis(flowLifetime)
      const text = yield* Effect.orDie(encodeFlow({ ...flow, tenantId, issuer, clientId, until }))
      return { url, flow: Redacted.make(yield* box.seal("sso-flow", text)) }
    })

    /**
     * The provider's sign-in page for that address, and the sealed state for the browser. The result shows whether the
     * domain has single sign-on, and nothing about the person.
     */
    const begin = Effect.fn("SignOn.begin")(function* (email: Email, redirectUri: string, network: string) {
      return yield* beginFlow(email, redirectUri).pipe(
        limiter.withPermit(network),
        Effect.catchTag("LimitReached", () => Effect.fail(tooManySignIns()))
      )
    })

    /** A first sign-in: links a member of the tenant by e-mail address, or creates one. */
    const linkOrCreate = Effect.fn("SignOn.linkOrCreate")(function* (
      scope: TenantScope,
      connection: StoredConnection,
      claims: IdentityClaims
    ) {
      const email = decodeEmail(claims.email)
      if (Option.isNone(email) || !(claims.emailVerified || connection.trustsEmail)) {
        return yield* refused("email")
      }
      const isInOwnDomain = connection.domains.some(
        ({ confirmed, domain }) => confirmed && domain === domainOf(email.value)
      )
      if (!isInOwnDomain) return yield* refused("account")
      const identity = { issuer: connection.issuer, subject: claims.subject }
      const existing = yield* users.findByEmail(email.value)
      if (Option.isSome(existing)) {
        // The address belongs to a user of another tenant, or to one linked to another subject.
        const { id, role, tenantId } = existing.value
        if (tenantId !== scope.tenantId || !(yield* connections.link(scope, id, identity))) {
          return yield* refused("account")
        }
        return { user: { id, tenantId, email: existing.value.email, role }, action: "user.link" as const }
      }
      if (!connection.createsPeople) return yield* refused("account")
      const role = roleOf(connection, claims.groups)
      if (role === null) return yield* refused("role")
      const id = yield* newId.user
      const created = yield* users.insert(scope, {
        id,
        email: email.value,
        role,
        passwordHash: null,
        passwordBy: null
      })
      if (Option.isNone(created) || !(yield* connections.link(scope, id, identity))) {
        return yield* refused("account")
      }
      return { user: created.value, action: "user.create" as const }
    })

    /** The role that the groups give. The last owner stays an owner. */
    const roleFor = Effect.fn("SignOn.roleFor")(function* (
      scope: TenantScope,
      connection: StoredConnection,
      groups: Parameters<typeof signedInRoleOf>[1],
      { id, role }: Pick<User, "id" | "role">
    ) {
      if (connection.groupRoles.length === 0) return role
      return (yield* team.isLastOwner(scope, id)) ? role : signedInRoleOf(connection, groups)
    })

    /** The connection if the sign-in began with it: one that began with another provider cannot end with this one. */
    const connectionOf = Effect.fn("SignOn.connectionOf")(function* (
      scope: TenantScope,
      { clientId, issuer }: Pick<StoredConnection, "clientId" | "issuer">
    ) {
      const found = yield* connections.find(scope)
      return Option.isSome(found) && found.value.issuer === issuer && found.value.clientId === clientId
        ? found.value
        : yield* refused("retry")
    })

    /**
     * The user who signs in, with the role that the provider's groups give. Null for a person who has lost every role:
     * all their sessions and credentials end. The caller holds the team's lock.
     */
    const findOrCreateUser = Effect.fn("SignOn.findOrCreateUser")(function* (
      scope: TenantScope,
      connection: StoredConnection,
      claims: IdentityClaims
    ) {
      const identity = { issuer: connection.issuer, subject: claims.subject }
      const found = yield* connections.person(scope, identity)
      const { action, user } = Option.isSome(found)
        ? { user: found.value, action: null }
        : yield* linkOrCreate(scope, connection, claims)
      // A person who was just linked may have been provisioned with groups before.
      const now = Option.isSome(found) ? found : yield* connections.person(scope, identity)
      if (Option.isNone(now) || !now.value.active) return yield* refused("account")
      const groups = { signed: claims.groups, provisioned: now.value.groups }
      const role = yield* roleFor(scope, connection, groups, user)
      if (role === null && action !== null) return yield* refused("role")
      if (role === null) return yield* Effect.as(team.lockOut(scope, user.id), null)
      if (role === user.role) return { user, actions: action === null ? [] : [action] }
      yield* team.setRole(scope, user.id, role)
      if (!atLeast(role, user.role)) yield* team.signOut(scope, user.id)
      yield* team.revokeUngranted(scope)
      return {
        user: { ...user, role },
        actions: [...(action === null ? [] : [action]), "user.update" as const]
      }
    })

    const openSession = Effect.fn("SignOn.openSession")(function* (
      connection: StoredConnection,
      scope: TenantScope,
      claims: IdentityClaims,
      { origin, requestId }: CallbackRequest
    ) {
      const { tenantId } = scope
      const token = Redacted.make(yield* credentials.token)
      const fingerprint = yield* credentials.fingerprint(token)
      // The team is locked, so that the connection is not replaced or removed meanwhile.
      const entry = Effect.gen(function* () {
        yield* team.lock(scope)
        const current = yield* connectionOf(scope, connection)
        const found = yield* findOrCreateUser(scope, current, claims)
        if (found === null) return null
        const opened = yield* sessions.insert({
          fingerprint,
          tenantId,
          userId: found.user.id,
          method: "sso",
          passwordHash: null,
          ...origin,
          lifetime: sessionLifetime
        })
        return opened ? found : yield* refused("retry")
      }).pipe(sql.withTransaction, Effect.catchTag("SqlError", Effect.die))
      const { actions, user } = yield* Effect.filterOrFail(
        entry,
        (found) => found !== null,
        () => refused("role")
      ).pipe(
        Effect.tapErrorTag("SignOnRefused", ({ problem }) =>
          Effect.logWarning("A single sign-on led to no account", { tenantId, problem })
        )
      )
      const by = { tenantId, actor: { type: "service" as const, id: "single-sign-on" }, requestId }
      yield* Effect.forEach(actions, (action) => audit.record(by, action, user.id), { discard: true })
      return {
        user: User.make({ id: user.id, tenantId: user.tenantId, email: user.email, role: user.role }),
        token
      }
    })

    const finishFlow = Effect.fn("SignOn.finishFlow")(function* (
      sealed: Redacted.Redacted | null,
      answer: SignOnAuthorizationResponse,
      redirectUri: string,
      by: CallbackRequest
    ) {
      const text = sealed === null ? Option.none() : yield* box.open("sso-flow", Redacted.value(sealed))
      const flow = Option.flatMap(text, decodeFlow)
      if (Option.isNone(flow)) return yield* refused("retry")
      const { clientId, issuer, nonce, state, tenantId, until, verifier } = flow.value
      const scope = { tenantId }
      if (until < (yield* Clock.currentTimeMillis) || answer.state !== state) return yield* refused("retry")
      const connection = yield* connectionOf(scope, { issuer, clientId })
      const claims = yield* clientOf(connection, redirectUri).pipe(
        Effect.flatMap((client) => provider.finish(client, { state, nonce, verifier }, answer)),
        withOwner(tenantId),
        Effect.tapError(logFailure(tenantId)),
        Effect.mapError(({ reason }) => refused(problemOfReason[reason]))
      )
      return yield* Effect.uninterruptible(openSession(connection, scope, claims, by))
    })

    /**
     * Ends a sign-in that {@link begin} started in the same browser, and opens a session. Fails with SignOnRefused,
     * which the returned page explains.
     */
    const finish = Effect.fn("SignOn.finish")(function* (
      sealed: Redacted.Redacted | null,
      answer: SignOnAuthorizationResponse,
      redirectUri: string,
      by: CallbackRequest
    ) {
      return yield* finishFlow(sealed, answer, redirectUri, by).pipe(
        limiter.withPermit(by.origin.address ?? ""),
        Effect.catchTag("LimitReached", "SERVICE_UNAVAILABLE", () => Effect.fail(refused("retry")))
      )
    })

    return { begin, finish } as const
  })
}) {}
