/** The people of a tenant: invite, change roles, remove. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { Credentials } from "../../capabilities/Credentials.ts"
import { atLeast, manages, type Role, type SessionUser } from "../../domain/accounts/Access.ts"
import type { Email, TenantScope } from "../../domain/accounts/Account.ts"
import {
  Conflict,
  Forbidden,
  ServiceUnavailable,
  Unauthorized,
  noSuch,
  orNoSuch,
  forbiddenForRole
} from "../../domain/Errors.ts"
import { newId, type UserId } from "../../domain/Ids.ts"
import type { ChoosePassword, CreateUser, PatchUser } from "../../domain/accounts/Team.ts"
import { SingleSignOnStore } from "../../store/accounts/SingleSignOn.ts"
import { TeamStore } from "../../store/accounts/Team.ts"
import { UserStore } from "../../store/accounts/Users.ts"

/** Lifetime of an invitation. */
const invitationLifetime = Duration.days(7)

const tooManyPasswords = () =>
  new ServiceUnavailable({ message: "Too many passwords are being set. Try again shortly." })
const lastOwner = () =>
  new Conflict({
    message:
      "The last owner who can sign in stays. Make somebody else an owner first, who has accepted your invitation."
  })
const notInvited = () =>
  new Unauthorized({
    message: "The invitation was used, replaced or withdrawn, or has expired. Ask for another one."
  })

const deactivated = () =>
  new Conflict({
    message: "Your identity provider has deactivated this person. It has to activate them again."
  })
const noPasswords = () =>
  new Conflict({ message: "This team signs in by single sign-on. There is no password to choose." })

/** Fails unless `role` manages all of `roles`: only owners may make or change owners. */
const requireManages = (role: Role, ...roles: ReadonlyArray<Role>) =>
  roles.every((each) => manages(role, each))
    ? Effect.void
    : Effect.fail(
        new Forbidden({
          message: atLeast(role, "admin")
            ? "Only an owner may do this to an owner."
            : "Your role does not allow this."
        })
      )

export class Team extends Effect.Service<Team>()("usecases/accounts/Team", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const credentials = yield* Credentials
    const users = yield* UserStore
    const store = yield* TeamStore
    const singleSignOn = yield* SingleSignOnStore

    const inTransaction = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
      effect.pipe(sql.withTransaction, Effect.catchTag("SqlError", Effect.die))

    const newToken = Effect.gen(function* () {
      const token = Redacted.make(yield* credentials.token)
      return { token, fingerprint: yield* credentials.fingerprint(token) }
    })

    /** Stores the invitation of `user` by `by`, in place of an earlier one. */
    const storeInvitation = (
      { tenantId }: TenantScope,
      by: UserId,
      { id, role }: { readonly id: UserId; readonly role: Role },
      { fingerprint, token }: Effect.Effect.Success<typeof newToken>
    ) =>
      Effect.map(
        store.invite({ fingerprint, tenantId, by, userId: id, role, lifetime: invitationLifetime }),
        (expiresAt) => ({ token, expiresAt })
      )

    const find = (scope: TenantScope, id: UserId) => store.find(scope, id).pipe(orNoSuch("user"))

    /**
     * Begins a change of the team. Other changes wait until the end of the transaction. Fails when `by` may not change
     * `roles` by the current roles, which may have changed since the request came.
     */
    const begin = Effect.fn("Team.begin")(function* (by: SessionUser, ...roles: ReadonlyArray<Role>) {
      yield* store.lock(by)
      const actor = yield* store.find(by, by.userId)
      if (Option.isNone(actor) || !actor.value.active) {
        return yield* forbiddenForRole()
      }
      const { role } = actor.value
      yield* requireManages(role, ...roles)
      return role
    })

    /**
     * Creates a user. Without a password there is an invitation to choose one, unless the team signs in by single
     * sign-on. A given password is valid while `by` manages the user.
     */
    const create = Effect.fn("Team.create")(function* (
      by: SessionUser,
      { email, role, password }: CreateUser
    ) {
      yield* requireManages(by.role, role)
      const passwordHash =
        password === undefined
          ? null
          : yield* Effect.mapError(credentials.hashPassword(password, by.tenantId), tooManyPasswords)
      const passwordBy = passwordHash === null ? null : by.userId
      const secret = yield* newToken
      const id = yield* newId.user
      const addition = Effect.gen(function* () {
        yield* begin(by, role)
        const passwords = yield* store.passwordsAllowed(by)
        if (!passwords && passwordHash !== null) return yield* noPasswords()
        const created = yield* users.insert(by, { id, email, role, passwordHash, passwordBy })
        if (Option.isNone(created)) {
          return yield* new Conflict({ message: "Another user has this e-mail address." })
        }
        const user = yield* Effect.orDie(find(by, id))
        if (passwordHash !== null || !passwords) return { user, invitation: null }
        return { user, invitation: yield* storeInvitation(by, by.userId, user, secret) }
      })
      return yield* inTransaction(addition)
    })

    /** A new invitation; the previous one is void. The password stays valid until another is chosen. */
    const invite = Effect.fn("Team.invite")(function* (by: SessionUser, id: UserId) {
      const secret = yield* newToken
      const renewal = Effect.gen(function* () {
        const role = yield* begin(by)
        const user = yield* find(by, id)
        yield* requireManages(role, user.role)
        if (!user.active) return yield* deactivated()
        if (!(yield* store.passwordsAllowed(by))) return yield* noPasswords()
        return { user, invitation: yield* storeInvitation(by, by.userId, user, secret) }
      })
      return yield* inTransaction(renewal)
    })

    /**
     * Changes a user's role. CONFLICT for the last owner. A demoted user has to sign in again. Invitations and
     * passwords are revoked when their author no longer has a role that may give them.
     */
    const patch = Effect.fn("Team.patch")(function* (by: SessionUser, id: UserId, { role }: PatchUser) {
      const ownRole = yield* begin(by)
      const user = yield* find(by, id)
      yield* requireManages(ownRole, user.role, role)
      if (role !== "owner" && (yield* store.isLastOwner(by, id))) return yield* lastOwner()
      yield* store.setRole(by, id, role)
      if (!atLeast(role, user.role)) yield* store.signOut(by, id)
      yield* store.revokeUngranted(by)
      return yield* find(by, id)
    }, inTransaction)

    /**
     * Removes the user with their sessions, and revokes the invitations and passwords that they gave. CONFLICT for the
     * last owner.
     */
    const remove = Effect.fn("Team.remove")(function* (by: SessionUser, id: UserId) {
      const role = yield* begin(by)
      const user = yield* find(by, id)
      yield* requireManages(role, user.role)
      if (yield* store.isLastOwner(by, id)) return yield* lastOwner()
      yield* store.remove(by, id)
      yield* store.revokeUngranted(by)
    }, inTransaction)

    /** Sets the password of the invited user, once, and ends that user's open sessions. */
    const choosePassword = Effect.fn("Team.choosePassword")(function* ({ token, password }: ChoosePassword) {
      const fingerprint = yield* credentials.fingerprint(token)
      // Checked before hashing, which is slow.
      const found = yield* store.findInvited(fingerprint)
      if (Option.isNone(found)) return yield* notInvited()
      const user = found.value
      const passwordHash = yield* Effect.mapError(
        credentials.hashPassword(password, user.tenantId),
        tooManyPasswords
      )
      const acceptance = Effect.gen(function* () {
        yield* store.lock(user)
        if (!(yield* store.redeem(fingerprint, passwordHash))) return yield* notInvited()
        return yield* Effect.orDie(find(user, user.id))
      })
      return yield* inTransaction(acceptance)
    })

    /**
     * Lets the operator restore access for an owner whom the provider refuses: password sign-in is switched on again,
     * and the invitation lets the owner choose a password.
     */
    const recover = Effect.fn("Team.recover")(function* (scope: TenantScope, email: Email) {
      const secret = yield* newToken
      const recovery = Effect.gen(function* () {
        yield* store.lock(scope)
        const found = yield* users.findByEmail(email)
        if (Option.isNone(found) || found.value.tenantId !== scope.tenantId) return yield* noSuch("user")
        const { id, role } = found.value
        if (role !== "owner") return yield* noSuch("user")
        yield* singleSignOn.allowPasswords(scope)
        yield* store.activate(scope, id)
        const invitation = yield* storeInvitation(scope, id, { id, role }, secret)
        return { user: yield* find(scope, id), invitation }
      })
      return yield* inTransaction(recovery)
    })

    return { list: store.list, create, invite, recover, patch, remove, choosePassword } as const
  })
}) {}
