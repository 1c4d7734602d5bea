/** The people of a tenant: invited, promoted, demoted, removed (contract 3). */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { Credentials } from "../capabilities/Credentials.ts"
import { atLeast, type Role, type SessionUser } from "../domain/Access.ts"
import type { TenantScope } from "../domain/Account.ts"
import { Conflict, Forbidden, NotFound, ServiceUnavailable, Unauthorized } from "../domain/Errors.ts"
import { newId, type UserId } from "../domain/Ids.ts"
import type { ChoosePassword, CreateUser, Member, PatchUser } from "../domain/Team.ts"
import { TeamStore } from "../store/Team.ts"
import type { PageRequest } from "../store/Tenants.ts"
import { UserStore } from "../store/Users.ts"

/** How long an invitation is good for. */
export const invitationLasts = Duration.days(7)

const missing = () => new NotFound({ message: "There is no such user." })
const busy = () => new ServiceUnavailable({ message: "Too many passwords are being set. Try again shortly." })
const lastOwner = () => new Conflict({ message: "The last owner stays. Make somebody else an owner first." })
const notInvited = () =>
  new Unauthorized({ message: "The invitation is used, replaced or over. Ask for another one." })

/** Owners alone make owners and change them. */
const mayTouch = (by: SessionUser, ...roles: ReadonlyArray<Role>) =>
  roles.every((role) => atLeast(by.role, role))
    ? Effect.void
    : Effect.fail(new Forbidden({ message: "Only an owner may do this to an owner." }))

export class Team extends Effect.Service<Team>()("usecases/Team", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const credentials = yield* Credentials
    const users = yield* UserStore
    const store = yield* TeamStore

    const atomically = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
      effect.pipe(
        sql.withTransaction,
        Effect.catchIf(
          (error): error is Extract<typeof error, { readonly _tag: "SqlError" }> =>
            typeof error === "object" && error !== null && "_tag" in error && error._tag === "SqlError",
          Effect.die
        )
      )

    const freshToken = Effect.gen(function* () {
      const token = Redacted.make(yield* credentials.token)
      return { token, fingerprint: yield* credentials.fingerprint(token) }
    })

    /** Oldest first. */
    const list = (scope: TenantScope, page: PageRequest) => store.list(scope, page)

    const known = Effect.fn("Team.known")(function* (scope: TenantScope, id: UserId) {
      const found = yield* store.find(scope, id)
      if (Option.isNone(found)) return yield* missing()
      return found.value
    })

    /** Without a password the user has one that nobody knows, and an invitation to choose another. */
    const create = Effect.fn("Team.create")(function* (
      by: SessionUser,
      { email, role, password }: CreateUser
    ) {
      yield* mayTouch(by, role)
      const unknown = Redacted.make(yield* credentials.token)
      const passwordHash = yield* Effect.mapError(credentials.hashPassword(password ?? unknown), busy)
      const { token, fingerprint } = yield* freshToken
      const id = yield* newId.user
      return yield* atomically(
        Effect.gen(function* () {
          const made = yield* users.insert(by, { id, email, role, passwordHash })
          if (Option.isNone(made)) {
            return yield* new Conflict({ message: "Another user has this e-mail address." })
          }
          if (password !== undefined) return { user: yield* Effect.orDie(known(by, id)), invitation: null }
          const expiresAt = yield* store.invite({
            fingerprint,
            userId: id,
            first: true,
            lasts: invitationLasts
          })
          return { user: yield* Effect.orDie(known(by, id)), invitation: { token, expiresAt } }
        })
      )
    })

    /** A fresh invitation; the one before is void. The password stays good until another is chosen. */
    const invite = Effect.fn("Team.invite")(function* (by: SessionUser, id: UserId) {
      const user = yield* known(by, id)
      yield* mayTouch(by, user.role)
      const { token, fingerprint } = yield* freshToken
      const expiresAt = yield* store.invite({
        fingerprint,
        userId: id,
        first: user.invited,
        lasts: invitationLasts
      })
      return { user, invitation: { token, expiresAt } }
    })

    /** CONFLICT for the last owner. Whoever is demoted has to sign in again. */
    const patch = Effect.fn("Team.patch")(function* (by: SessionUser, id: UserId, { role }: PatchUser) {
      const change = Effect.gen(function* () {
        const owners = yield* store.lockOwners(by)
        const user = yield* known(by, id)
        yield* mayTouch(by, user.role, role)
        if (user.role === "owner" && role !== "owner" && owners === 1) return yield* lastOwner()
        yield* store.setRole(by, id, role)
        if (!atLeast(role, user.role)) yield* store.signOut(id)
        const changed: Member = { ...user, role }
        return changed
      })
      return yield* atomically(change)
    })

    /** Ends the user's sessions too. CONFLICT for the last owner. */
    const remove = Effect.fn("Team.remove")(function* (by: SessionUser, id: UserId) {
      const removal = Effect.gen(function* () {
        const owners = yield* store.lockOwners(by)
        const user = yield* known(by, id)
        yield* mayTouch(by, user.role)
        if (user.role === "owner" && owners === 1) return yield* lastOwner()
        yield* store.remove(by, id)
      })
      yield* atomically(removal)
    })

    /** Sets the password of whoever holds the invitation, once, and ends the sessions that were open. */
    const choosePassword = Effect.fn("Team.choosePassword")(function* ({ token, password }: ChoosePassword) {
      const fingerprint = yield* credentials.fingerprint(token)
      // Before the hashing, which costs.
      const found = yield* store.invited(fingerprint)
      if (Option.isNone(found)) return yield* notInvited()
      const passwordHash = yield* Effect.mapError(credentials.hashPassword(password), busy)
      if (Option.isNone(yield* store.redeem(fingerprint, passwordHash))) return yield* notInvited()
      return { ...found.value, invited: false }
    })

    return { list, create, invite, patch, remove, choosePassword } as const
  })
}) {}
