/**
 * People and groups of a tenant, provisioned by its identity provider. Provisioning neither makes nor demotes owners,
 * and the last owner stays active.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { atLeast, type Role } from "../../domain/accounts/Access.ts"
import { Email, type TenantScope } from "../../domain/accounts/Account.ts"
import {
  type GroupChanges,
  membersAfter,
  newScimGroupId,
  type PersonChanges,
  ScimError
} from "../../domain/accounts/Scim.ts"
import { type Connection, domainOf, provisionedRoleOf } from "../../domain/accounts/SingleSignOn.ts"
import { newId } from "../../domain/Ids.ts"
import { type ScimPerson, ScimStore } from "../../store/accounts/Scim.ts"
import { SingleSignOnStore } from "../../store/accounts/SingleSignOn.ts"
import { TeamStore } from "../../store/accounts/Team.ts"
import { UserStore } from "../../store/accounts/Users.ts"

/** The role of people to whom neither a group nor the connection gives one. */
const defaultRole: Role = "viewer"

const decodeEmail = Schema.decodeUnknownOption(Email)

const missing = (what: "user" | "group") =>
  new ScimError({ status: 404, scimType: null, detail: `There is no such ${what}.` })
const alreadyTaken = (what: string) =>
  new ScimError({ status: 409, scimType: "uniqueness", detail: `The ${what} is already taken.` })
const wrongAddress = () =>
  new ScimError({
    status: 400,
    scimType: "invalidValue",
    detail: "userName has to be an e-mail address in a confirmed domain of the tenant."
  })
const fixedAddress = () =>
  new ScimError({ status: 400, scimType: "mutability", detail: "The userName of a user cannot be changed." })
const lastOwner = () =>
  new ScimError({
    status: 409,
    scimType: "mutability",
    detail: "The last owner who can sign in stays, and stays active. Make somebody else an owner first."
  })

export class Scim extends Effect.Service<Scim>()("usecases/accounts/Scim", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const store = yield* ScimStore
    const connections = yield* SingleSignOnStore
    const team = yield* TeamStore
    const users = yield* UserStore

    /** Runs `change` with the tenant's connection. Changes of one team run one at a time. */
    const changeTeam = <A, E>(scope: TenantScope, change: (connection: Connection) => Effect.Effect<A, E>) =>
      Effect.gen(function* () {
        yield* team.lock(scope)
        const connection = yield* connections.find(scope)
        if (Option.isNone(connection)) return yield* missing("user")
        return yield* change(connection.value)
      }).pipe(sql.withTransaction, Effect.catchTag("SqlError", Effect.die))

    const person = Effect.fn("Scim.person")(function* (scope: TenantScope, id: string) {
      const found = yield* store.person(scope, id)
      if (Option.isNone(found)) return yield* missing("user")
      return found.value
    })

    const createPerson = (scope: TenantScope, given: PersonChanges & { readonly userName: string }) =>
      changeTeam(scope, (connection) =>
        Effect.gen(function* () {
          const email = decodeEmail(given.userName)
          const isInOwnDomain = Option.exists(email, (address) =>
            connection.domains.some(({ confirmed, domain }) => confirmed && domain === domainOf(address))
          )
          if (Option.isNone(email) || !isInOwnDomain) return yield* wrongAddress()
          const id = yield* newId.user
          const role = provisionedRoleOf(connection, []) ?? defaultRole
          const created = yield* users.insert(scope, {
            id,
            email: email.value,
            role,
            passwordHash: null,
            passwordBy: null
          })
          if (Option.isNone(created)) return yield* alreadyTaken("userName")
          if (!(yield* store.setPerson(scope, id, given.externalId ?? null, given.active ?? true))) {
            return yield* alreadyTaken("externalId")
          }
          return yield* person(scope, id)
        })
      ).pipe(Effect.withSpan("Scim.createPerson"))

    /** Omitted fields stay. A deactivated person is signed out at once, and all their credentials end. */
    const changePerson = (scope: TenantScope, id: string, changes: PersonChanges) =>
      changeTeam(scope, () =>
        Effect.gen(function* () {
          const found: ScimPerson = yield* person(scope, id)
          const { active = found.active, externalId = found.externalId, userName = found.userName } = changes
          // A deactivation is not refused because of a name.
          if (active && userName.toLowerCase() !== found.userName) return yield* fixedAddress()
          if (!active && (yield* team.isLastOwner(scope, found.id))) return yield* lastOwner()
          if (!(yield* store.setPerson(scope, found.id, externalId, active)))
            return yield* alreadyTaken("externalId")
          if (!active) {
            yield* team.lockOut(scope, found.id)
            yield* team.revokeUngranted(scope)
          }
          return yield* person(scope, id)
        })
      ).pipe(Effect.withSpan("Scim.changePerson"))

    const removePerson = (scope: TenantScope, id: string) =>
      changeTeam(scope, () =>
        Effect.gen(function* () {
          const found = yield* person(scope, id)
          if (yield* team.isLastOwner(scope, found.id)) return yield* lastOwner()
          yield* team.remove(scope, found.id)
          yield* team.revokeUngranted(scope)
        })
      ).pipe(Effect.withSpan("Scim.removePerson"))

    /** Gives each person the role that their groups give, when groups are mapped to roles. Owners stay owners. */
    const giveRoles = Effect.fn("Scim.giveRoles")(function* (
      scope: TenantScope,
      connection: Connection,
      ids: ReadonlyArray<string>
    ) {
      if (connection.groupRoles.length === 0 || ids.length === 0) return
      const changes = (yield* store.findPeople(scope, ids))
        .filter(({ role }) => role !== "owner")
        .map(({ groups, id, role }) => ({
          id,
          from: role,
          to: provisionedRoleOf(connection, groups) ?? defaultRole
        }))
        .filter(({ from, to }) => from !== to)
      for (const role of new Set(changes.map(({ to }) => to))) {
        const become = changes.filter(({ to }) => to === role).map(({ id }) => id)
        yield* store.setRoles(scope, become, role)
      }
      const demoted = changes.filter(({ from, to }) => !atLeast(to, from)).map(({ id }) => id)
      if (demoted.length > 0) yield* team.signOut(scope, ...demoted)
      if (changes.length > 0) yield* team.revokeUngranted(scope)
    })

    const group = Effect.fn("Scim.group")(function* (scope: TenantScope, id: string, withMembers = true) {
      const found = yield* store.group(scope, id, withMembers)
      if (Option.isNone(found)) return yield* missing("group")
      return found.value
    })

    /** Adds and removes members of the group. */
    const changeMembers = Effect.fn("Scim.changeMembers")(function* (
      scope: TenantScope,
      id: string,
      before: ReadonlyArray<string>,
      changes: GroupChanges["members"]
    ) {
      const after = yield* membersAfter(before, changes)
      const membersBefore = new Set(before)
      const added = [...after].filter((member) => !membersBefore.has(member))
      const removed = before.filter((member) => !after.has(member))
      yield* store.changeMembers(scope, id, { added, removed })
      return [...added, ...removed]
    })

    const createGroup = (scope: TenantScope, given: GroupChanges & { readonly name: string }) =>
      changeTeam(scope, (connection) =>
        Effect.gen(function* () {
          const id = yield* newScimGroupId
          const { externalId = null, members, name } = given
          if (!(yield* store.insertGroup(scope, { id, name, externalId })))
            return yield* alreadyTaken("displayName")
          yield* giveRoles(scope, connection, yield* changeMembers(scope, id, [], members))
          return yield* group(scope, id)
        })
      ).pipe(Effect.withSpan("Scim.createGroup"))

    /** Omitted fields stay. */
    const changeGroup = (scope: TenantScope, id: string, changes: GroupChanges) =>
      changeTeam(scope, (connection) =>
        Effect.gen(function* () {
          const before = yield* group(scope, id)
          const { externalId = before.externalId, name = before.name } = changes
          if (!(yield* store.setGroup(scope, id, name, externalId))) return yield* alreadyTaken("displayName")
          const members = before.members.map((member) => member.id)
          const changed = yield* changeMembers(scope, id, members, changes.members)
          const renamed = name === before.name ? [] : members
          yield* giveRoles(scope, connection, [...changed, ...renamed])
        })
      ).pipe(Effect.withSpan("Scim.changeGroup"))

    const removeGroup = (scope: TenantScope, id: string) =>
      changeTeam(scope, (connection) =>
        Effect.gen(function* () {
          const { members } = yield* group(scope, id)
          yield* store.removeGroup(scope, id)
          const ids = members.map((member) => member.id)
          yield* giveRoles(scope, connection, ids)
        })
      ).pipe(Effect.withSpan("Scim.removeGroup"))

    return {
      people: store.people,
      person,
      createPerson,
      changePerson,
      removePerson,
      groups: store.groups,
      group,
      createGroup,
      changeGroup,
      removeGroup
    } as const
  })
}) {}
