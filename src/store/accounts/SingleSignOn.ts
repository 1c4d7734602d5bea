/** The identity provider of a tenant, its domains, and the identities of its users. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { Connection, type Domain } from "../../domain/accounts/SingleSignOn.ts"
import { TenantId, UserId } from "../../domain/Ids.ts"
import { Member } from "../../domain/accounts/Team.ts"
import { toJsonb } from "../Jsonb.ts"
import * as Rows from "../Rows.ts"

const Row = Schema.Struct({
  ...Connection.fields,
  createdAt: Schema.DateTimeUtcFromDate,
  updatedAt: Schema.DateTimeUtcFromDate,
  clientSecret: Schema.String
})
export type StoredConnection = typeof Row.Type

type NewConnection = Omit<Connection, "createdAt" | "updatedAt" | "version" | "domains"> & {
  readonly clientSecret: string
  readonly domains: ReadonlyArray<Domain>
}

const Person = Schema.Struct({
  ...Schema.Struct(Member.fields).omit("invited", "createdAt").fields,
  groups: Schema.Array(Schema.String)
})

interface Identity {
  readonly issuer: string
  readonly subject: string
}

export class SingleSignOnStore extends Effect.Service<SingleSignOnStore>()("store/accounts/SingleSignOn", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    const find = ({ tenantId }: TenantScope) =>
      sql`
        select c.issuer, c.client_id as "clientId", c.client_secret as "clientSecret",
          c.trusts_email as "trustsEmail", c.groups_claim as "groupsClaim", c.group_roles as "groupRoles",
          c.default_role as "defaultRole", c.creates_people as "createsPeople",
          c.allows_passwords as "allowsPasswords", c.version, c.created_at as "createdAt",
          c.updated_at as "updatedAt",
          coalesce((select jsonb_agg(jsonb_build_object('domain', d.domain, 'confirmed', d.confirmed_at is not null)
            order by d.domain) from sso_domains d where d.tenant_id = c.tenant_id), '[]') as domains
        from sso_connections c where c.tenant_id = ${tenantId}`.pipe(
        Rows.first(Row),
        Effect.withSpan("SingleSignOnStore.find")
      )

    /** The provisioned groups of a person `u`. */
    const groupNames = sql`
      coalesce((select jsonb_agg(g.name) from scim_group_members m
        join scim_groups g on g.tenant_id = m.tenant_id and g.id = m.group_id
        where m.tenant_id = u.tenant_id and m.user_id = u.id), '[]')`

    /** The tenant of a confirmed domain, while it has a connection. */
    const tenantOf = (domain: string) =>
      sql`/* every tenant: directory */
        select d.tenant_id as "tenantId" from sso_domains d join sso_connections c on c.tenant_id = d.tenant_id
        where d.domain = ${domain} and d.confirmed_at is not null`.pipe(
        Rows.first(Schema.Struct({ tenantId: TenantId })),
        Effect.withSpan("SingleSignOnStore.tenantOf")
      )

    /** Ends the sessions opened by `method`. */
    const endSessions = ({ tenantId }: TenantScope, method: "sso" | "password") => sql`
      delete from user_sessions where tenant_id = ${tenantId} and method = ${method}`

    /** Removes the groups that the provider has sent, which determine roles. */
    const removeGroups = ({ tenantId }: TenantScope) =>
      sql`delete from scim_groups where tenant_id = ${tenantId}`

    /**
     * Unchanged domains keep their confirmation. A new issuer ends the sessions and groups of the previous one;
     * forbidding passwords ends sessions opened with passwords. Nothing is changed if nobody could sign in afterwards:
     * because no owner has done so at the provider (`noOwner`), or no confirmed domain is left (`noDomain`).
     */
    const put = Effect.fn("SingleSignOnStore.put")(
      function* (scope: TenantScope, next: NewConnection) {
        const { tenantId } = scope
        yield* sql`select id from tenants where id = ${tenantId} for no key update`
        const owners = yield* sql`
        select 1 from user_identities i join users u on u.id = i.user_id and u.tenant_id = i.tenant_id
        where i.tenant_id = ${tenantId} and i.issuer = ${next.issuer} and u.role = 'owner' and u.active
        limit 1`
        if (!next.allowsPasswords && owners.length === 0) return "noOwner" as const
        const before = yield* find(scope)
        const confirmed = Option.match(before, {
          onNone: () => [],
          onSome: (connection) => connection.domains.filter((domain) => domain.confirmed)
        })
        if (!next.allowsPasswords && !confirmed.some(({ domain }) => next.domains.includes(domain)))
          return "noDomain" as const
        const groupRoles = toJsonb(next.groupRoles)
        yield* sql`
        insert into sso_connections (tenant_id, issuer, client_id, client_secret, trusts_email, groups_claim, group_roles,
          default_role, creates_people, allows_passwords)
        values (${tenantId}, ${next.issuer}, ${next.clientId}, ${next.clientSecret}, ${next.trustsEmail},
          ${next.groupsClaim}, ${groupRoles}::jsonb, ${next.defaultRole}, ${next.createsPeople}, ${next.allowsPasswords})
        on conflict (tenant_id) do update set issuer = excluded.issuer, client_id = excluded.client_id,
          client_secret = excluded.client_secret, trusts_email = excluded.trusts_email,
          groups_claim = excluded.groups_claim, group_roles = excluded.group_roles,
          default_role = excluded.default_role, creates_people = excluded.creates_people,
          allows_passwords = excluded.allows_passwords, version = sso_connections.version + 1, updated_at = now()`
        const domains = toJsonb(next.domains)
        yield* sql`
        delete from sso_domains where tenant_id = ${tenantId}
          and domain not in (select jsonb_array_elements_text(${domains}::jsonb))`
        yield* sql`
        insert into sso_domains (tenant_id, domain)
        select ${tenantId}, jsonb_array_elements_text(${domains}::jsonb) on conflict do nothing`
        if (Option.isSome(before) && before.value.issuer !== next.issuer) {
          yield* endSessions(scope, "sso")
          yield* removeGroups(scope)
        }
        if (!next.allowsPasswords) {
          yield* endSessions(scope, "password")
          yield* sql`delete from user_invitations where tenant_id = ${tenantId}`
        }
        return "stored" as const
      },
      sql.withTransaction,
      Effect.orDie
    )

    /** Allows password sign-ins again. The caller must hold the team's lock. */
    const allowPasswords = ({ tenantId }: TenantScope) =>
      sql`
        update sso_connections set allows_passwords = true, version = version + 1, updated_at = now()
        where tenant_id = ${tenantId} and not allows_passwords`.pipe(
        Rows.none,
        Effect.withSpan("SingleSignOnStore.allowPasswords")
      )

    /**
     * Removes the connection with its sessions, domains, identities and groups. Without a change it is `missing`, or no
     * owner could sign in afterwards, with a password or a passkey (`noOwnerCanSignIn`).
     */
    const remove = Effect.fn("SingleSignOnStore.remove")(
      function* (scope: TenantScope) {
        const { tenantId } = scope
        // The same lock as a sign-in takes, so that none opens a session afterwards.
        yield* sql`select id from tenants where id = ${tenantId} for no key update`
        if (Option.isNone(yield* find(scope))) return "missing" as const
        const owners = yield* sql`
        select 1 from users u where u.tenant_id = ${tenantId} and u.role = 'owner' and u.active
          and (u.password_hash is not null
            or exists (select from passkeys p where p.tenant_id = u.tenant_id and p.user_id = u.id)) limit 1`
        if (owners.length === 0) return "noOwnerCanSignIn" as const
        yield* sql`delete from sso_connections where tenant_id = ${tenantId}`
        yield* sql`delete from sso_domains where tenant_id = ${tenantId}`
        yield* sql`delete from user_identities where tenant_id = ${tenantId}`
        yield* endSessions(scope, "sso")
        yield* removeGroups(scope)
        return "removed" as const
      },
      sql.withTransaction,
      Effect.orDie
    )

    /**
     * Records the operator's confirmation that a claimed domain belongs to the tenant; `missing`: the tenant does not
     * claim it.
     */
    const confirm = Effect.fn("SingleSignOnStore.confirm")(
      function* ({ tenantId }: TenantScope, domain: Domain, confirmed: boolean) {
        // One confirmation of a domain at a time, so that the next one sees it.
        yield* sql`/* every tenant: directory */
        select from sso_domains where domain = ${domain} order by tenant_id for update`
        const changed = yield* sql`/* every tenant: directory */
        update sso_domains d set confirmed_at = case when ${confirmed}::boolean then coalesce(confirmed_at, now()) end
        where d.tenant_id = ${tenantId} and d.domain = ${domain} and (not ${confirmed}::boolean or not exists (
          select from sso_domains o where o.domain = d.domain and o.tenant_id <> d.tenant_id
            and o.confirmed_at is not null))
        returning domain`
        if (changed.length === 1) return "done" as const
        const claimed = yield* sql`
        select 1 from sso_domains where tenant_id = ${tenantId} and domain = ${domain}`
        return claimed.length === 1 ? ("taken" as const) : ("missing" as const)
      },
      sql.withTransaction,
      Effect.orDie
    )

    /** The person of an identity; records the use. */
    const person = ({ tenantId }: TenantScope, { issuer, subject }: Identity) =>
      sql`
        update user_identities i set used_at = now() from users u
        where i.tenant_id = ${tenantId} and i.issuer = ${issuer} and i.subject = ${subject}
          and u.id = i.user_id and u.tenant_id = i.tenant_id
        returning u.id, u.tenant_id as "tenantId", u.email, u.role, u.active, ${groupNames} as groups`.pipe(
        Rows.first(Person),
        Effect.withSpan("SingleSignOnStore.person")
      )

    /** False when the person has another identity at the issuer. */
    const link = ({ tenantId }: TenantScope, userId: UserId, { issuer, subject }: Identity) =>
      sql`
        insert into user_identities (tenant_id, issuer, subject, user_id)
        values (${tenantId}, ${issuer}, ${subject}, ${userId}) on conflict do nothing returning user_id`.pipe(
        Rows.any,
        Effect.withSpan("SingleSignOnStore.link")
      )

    return { find, tenantOf, put, allowPasswords, remove, confirm, person, link } as const
  })
}) {}
