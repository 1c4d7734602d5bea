/** The people of a tenant and its groups, as its provider provisions them. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { Role } from "../../domain/accounts/Access.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { maxMembers } from "../../domain/accounts/Scim.ts"
import { UserId } from "../../domain/Ids.ts"
import { toJsonb } from "../Jsonb.ts"
import * as Rows from "../Rows.ts"

const Person = Schema.Struct({
  id: UserId,
  userName: Schema.String,
  externalId: Schema.NullOr(Schema.String),
  active: Schema.Boolean,
  role: Role,
  groups: Schema.Array(Schema.Struct({ id: Schema.String, name: Schema.String })),
  createdAt: Schema.DateTimeUtcFromDate
})
export type ScimPerson = typeof Person.Type

const Group = Schema.Struct({
  id: Schema.String,
  name: Schema.String,
  externalId: Schema.NullOr(Schema.String),
  members: Schema.Array(Schema.Struct({ id: Schema.String, userName: Schema.String })),
  createdAt: Schema.DateTimeUtcFromDate
})

const Total = Schema.Struct({ total: Schema.Int })

export interface ScimPage {
  /** 1-based. */
  readonly startIndex: number
  readonly count: number
}

/** All terms must match; an empty list matches all rows. */
type Filter<N> = ReadonlyArray<{ readonly name: N; readonly value: string }>
type PersonFilter = Filter<"userName" | "externalId" | "id" | "active">
type GroupFilter = Filter<"displayName" | "externalId" | "id" | "members">

export class ScimStore extends Effect.Service<ScimStore>()("store/accounts/Scim", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    const personTerm = ({ name, value }: PersonFilter[number]) => {
      switch (name) {
        case "userName":
          return sql`u.email = ${value.toLowerCase()}`
        case "externalId":
          return sql`u.external_id = ${value}`
        case "active":
          return sql`u.active = ${value === "true"}::boolean`
        case "id":
          return sql`u.id = ${value}`
      }
    }
    const groupTerm = ({ name, value }: GroupFilter[number]) => {
      switch (name) {
        case "displayName":
          return sql`lower(g.name) = lower(${value})`
        case "externalId":
          return sql`g.external_id = ${value}`
        case "members":
          return sql`exists (
            select from scim_group_members o
            where o.tenant_id = g.tenant_id and o.group_id = g.id and o.user_id = ${value})`
        case "id":
          return sql`g.id = ${value}`
      }
    }
    const personCondition = (filter: PersonFilter) => sql.and([sql`true`, ...filter.map(personTerm)])
    const groupCondition = (filter: GroupFilter) => sql.and([sql`true`, ...filter.map(groupTerm)])

    /** Oldest first, with the total count. */
    const people = Effect.fn("ScimStore.people")(function* (
      { tenantId }: TenantScope,
      filter: PersonFilter,
      { count, startIndex }: ScimPage
    ) {
      const rows = yield* sql`
        select u.id, u.email as "userName", u.external_id as "externalId", u.active, u.role, u.created_at as "createdAt",
          coalesce((select jsonb_agg(jsonb_build_object('id', g.id, 'name', g.name) order by g.id)
            from scim_group_members m join scim_groups g on g.tenant_id = m.tenant_id and g.id = m.group_id
            where m.tenant_id = u.tenant_id and m.user_id = u.id), '[]') as groups
        from users u where u.tenant_id = ${tenantId} and ${personCondition(filter)}
        order by u.id offset ${startIndex - 1} limit ${count}`.pipe(Rows.all(Person))
      const { total } = yield* sql`
          select count(*)::int as total from users u where u.tenant_id = ${tenantId} and ${personCondition(filter)}`.pipe(
        Rows.one(Total)
      )
      return { rows, total }
    }, Effect.orDie)

    /**
     * Oldest first, with the total count; members only on request. A page ends before its groups have more than
     * {@link maxMembers} members together.
     */
    const groups = Effect.fn("ScimStore.groups")(function* (
      { tenantId }: TenantScope,
      filter: GroupFilter,
      { count, startIndex }: ScimPage,
      withMembers: boolean
    ) {
      const members = withMembers
        ? sql`coalesce((select jsonb_agg(jsonb_build_object('id', u.id, 'userName', u.email) order by u.id)
            from scim_group_members m join users u on u.tenant_id = m.tenant_id and u.id = m.user_id
            where m.tenant_id = g.tenant_id and m.group_id = g.id), '[]')`
        : sql`'[]'::jsonb`
      const fits = withMembers ? sql`(running <= ${maxMembers} or place = 1)` : sql`true`
      const rows = yield* sql`
        with page as (
          select g.*, (select count(*) from scim_group_members m
            where m.tenant_id = g.tenant_id and m.group_id = g.id) as size
          from scim_groups g where g.tenant_id = ${tenantId} and ${groupCondition(filter)}
          order by g.id offset ${startIndex - 1} limit ${count}
        ), g as (
          select *, sum(size) over (order by id) as running, row_number() over (order by id) as place from page
        )
        select g.id, g.name, g.external_id as "externalId", g.created_at as "createdAt", ${members} as members
        from g where ${fits} order by g.id`.pipe(Rows.all(Group))
      const { total } = yield* sql`
          select count(*)::int as total from scim_groups g where g.tenant_id = ${tenantId} and ${groupCondition(filter)}`.pipe(
        Rows.one(Total)
      )
      return { rows, total }
    }, Effect.orDie)

    const firstRow = { startIndex: 1, count: 1 }
    const person = (scope: TenantScope, id: string) =>
      Effect.map(people(scope, [{ name: "id", value: id }], firstRow), ({ rows }) =>
        Option.fromNullable(rows[0])
      )
    const group = (scope: TenantScope, id: string, withMembers: boolean) =>
      Effect.map(groups(scope, [{ name: "id", value: id }], firstRow, withMembers), ({ rows }) =>
        Option.fromNullable(rows[0])
      )

    /** False when another person has the external id. */
    const setPerson = ({ tenantId }: TenantScope, id: UserId, externalId: string | null, active: boolean) =>
      sql`
        update users set external_id = ${externalId}, active = ${active}
        where tenant_id = ${tenantId} and id = ${id} and not exists (
          select from users o where o.tenant_id = ${tenantId} and o.external_id = ${externalId} and o.id <> ${id})
        returning id`.pipe(Rows.any, Effect.withSpan("ScimStore.setPerson"))

    const idsIn = (ids: ReadonlyArray<string>) =>
      sql`(select jsonb_array_elements_text(${toJsonb(ids)}::jsonb))`

    /** False when the tenant has a group of that name. */
    const insertGroup = (
      { tenantId }: TenantScope,
      {
        externalId,
        id,
        name
      }: { readonly id: string; readonly name: string; readonly externalId: string | null }
    ) =>
      sql`
        insert into scim_groups (tenant_id, id, name, external_id) values (${tenantId}, ${id}, ${name}, ${externalId})
        on conflict do nothing returning id`.pipe(Rows.any)

    /** False when another group has the name. */
    const setGroup = ({ tenantId }: TenantScope, id: string, name: string, externalId: string | null) =>
      sql`
        update scim_groups set name = ${name}, external_id = ${externalId}
        where tenant_id = ${tenantId} and id = ${id} and not exists (
          select from scim_groups o where o.tenant_id = ${tenantId} and lower(o.name) = lower(${name}) and o.id <> ${id})
        returning id`.pipe(Rows.any)

    const removeGroup = ({ tenantId }: TenantScope, id: string) =>
      sql`delete from scim_groups where tenant_id = ${tenantId} and id = ${id}`.pipe(Rows.none)

    /** Ids that do not belong to the tenant are ignored. */
    const changeMembers = Effect.fn("ScimStore.changeMembers")(function* (
      { tenantId }: TenantScope,
      groupId: string,
      { added, removed }: { readonly added: ReadonlyArray<string>; readonly removed: ReadonlyArray<string> }
    ) {
      yield* sql`
        delete from scim_group_members
        where tenant_id = ${tenantId} and group_id = ${groupId} and user_id in ${idsIn(removed)}`
      yield* sql`
        insert into scim_group_members (tenant_id, group_id, user_id)
        select u.tenant_id, ${groupId}, u.id from users u where u.tenant_id = ${tenantId} and u.id in ${idsIn(added)}
        on conflict do nothing`
    }, Effect.orDie)

    /** The roles of these people, with the names of their groups. */
    const findPeople = ({ tenantId }: TenantScope, ids: ReadonlyArray<string>) =>
      sql`
        select u.id, u.role, coalesce((select jsonb_agg(g.name) from scim_group_members m
          join scim_groups g on g.tenant_id = m.tenant_id and g.id = m.group_id
          where m.tenant_id = u.tenant_id and m.user_id = u.id), '[]') as groups
        from users u where u.tenant_id = ${tenantId} and u.id in ${idsIn(ids)} order by u.id`.pipe(
        Rows.all(Schema.Struct({ id: UserId, role: Role, groups: Schema.Array(Schema.String) })),
        Effect.withSpan("ScimStore.findPeople")
      )

    const setRoles = ({ tenantId }: TenantScope, ids: ReadonlyArray<string>, role: Role) =>
      sql`update users set role = ${role} where tenant_id = ${tenantId} and id in ${idsIn(ids)}`.pipe(
        Rows.none
      )

    return {
      people,
      person,
      setPerson,
      groups,
      group,
      insertGroup,
      setGroup,
      removeGroup,
      changeMembers,
      findPeople,
      setRoles
    } as const
  })
}) {}
