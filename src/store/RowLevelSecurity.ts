/**
 * Sets up row level security: the role that tenants' statements run as, and a policy on each table whose column
 * `tenant_id` is not null. Policies do not apply to the owner of the tables, so processes without the role are not
 * affected. No step needs a superuser. Each table is locked briefly and separately, with retries.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { isCatalogueConflict } from "./database/Failure.ts"
import { forEveryTenant } from "../concurrency/TenantSession.ts"

export class IsolationUnavailable extends Data.TaggedError("IsolationUnavailable")<{
  readonly message: string
}> {}

/** The state of row level security for the tenants' role. "The user" is the role that the process connects as. */
export interface RowLevelSecurityState {
  /** Whether the role exists. */
  readonly exists: boolean
  /** Whether the user is a member of the role that may become it. */
  readonly isMember: boolean
  /** Whether the user may create roles. */
  readonly creatable: boolean
  /** Whether policies do not apply to the role: it is a superuser, has BYPASSRLS, or owns tables. */
  readonly unbound: boolean
  /** Whether the user owns the tables, or policies do not apply to it. */
  readonly isOwner: boolean
  readonly user: string
  /** Tables of tenants, by name. */
  readonly tables: ReadonlyArray<string>
  /** Tables of tenants without the policy. */
  readonly open: ReadonlyArray<string>
  /** Tables that the role may not read or write. */
  readonly ungranted: ReadonlyArray<string>
}

/** Reads the state of row level security. Changes nothing. */
export const rowLevelSecurityState = (role: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const [found] = yield* sql<RowLevelSecurityState>`
      with ours as (
        select c.oid, c.relname::text as name, c.relowner,
          c.relrowsecurity and array(
            select p.polname::text from pg_policy p where p.polrelid = c.oid and p.polname in ('tenant_rows', 'own_rows')
          ) = '{own_rows}' as closed,
          exists (
            select from pg_attribute a
            where a.attrelid = c.oid and a.attname = 'tenant_id' and a.attnotnull and not a.attisdropped) as named
        from pg_class c
        where c.relnamespace = to_regnamespace(quote_ident(current_schema())) and c.relkind in ('r', 'p') and not c.relispartition
          and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
      ), role as (select * from pg_roles where rolname = ${role})
      select exists (select from role) as "exists", current_user::text as "user",
        coalesce((
          -- From PostgreSQL 16, a member needs the option SET, which the creator of a role does not get with it.
          select pg_has_role(current_user, oid,
            case when current_setting('server_version_num')::int >= 160000 then 'set' else 'member' end) from role
        ), false) as "isMember",
        (select rolsuper or rolcreaterole from pg_roles where rolname = current_user) as creatable,
        coalesce((
          select rolsuper or rolbypassrls or exists (select from ours where pg_has_role(role.oid, relowner, 'usage')) from role
        ), false) as unbound,
        (select rolsuper or rolbypassrls from pg_roles where rolname = current_user)
          or not exists (select from ours where named and not pg_has_role(current_user, relowner, 'usage')) as "isOwner",
        array(select name from ours where named order by 1) as tables,
        array(select name from ours where named and not closed order by 1) as open,
        array(
          select name from ours
          where not coalesce((
            select has_table_privilege(role.oid, ours.oid, 'select') and has_table_privilege(role.oid, ours.oid, 'insert')
              and has_table_privilege(role.oid, ours.oid, 'update') and has_table_privilege(role.oid, ours.oid, 'delete')
            from role), false)
          order by 1
        ) as ungranted`
    return found ?? (yield* Effect.dieMessage("The database does not say what roles it has."))
  }).pipe(forEveryTenant("migration"))

const lockTimeout = "2000"

const retrySchedule = Schedule.exponential("200 millis").pipe(
  Schedule.union(Schedule.spaced("5 seconds")),
  Schedule.jittered,
  Schedule.upTo("5 minutes")
)

const ensureRole = (role: string, found: RowLevelSecurityState) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const advice =
      `let an administrator run CREATE ROLE ${role} NOLOGIN; GRANT ${role} TO ${found.user}` +
      " (docs/operations.md, Row level security)"
    if (found.unbound)
      return yield* new IsolationUnavailable({
        message: `The role ${role} is bound by no policy: it is a superuser, has BYPASSRLS, or owns tables.`
      })
    if (found.isMember) return
    const notMember = new IsolationUnavailable({
      message: found.exists
        ? `${found.user} is no member of the role ${role}: ${advice}.`
        : `There is no role ${role}, and ${found.user} may not make it: ${advice}.`
    })
    if (!found.creatable) return yield* notMember
    // If two processes create it at the same time, one fails and then finds it.
    yield* found.exists ? Effect.void : Effect.ignore(sql`create role ${sql(role)} nologin`)
    yield* sql`grant ${sql(role)} to current_user`.pipe(
      // Another process may have granted it in the meantime.
      Effect.catchAll(() =>
        Effect.flatMap(rowLevelSecurityState(role), (now) => (now.isMember ? Effect.void : notMember))
      )
    )
  })

/** Takes the lock that lets one process at a time change tables, and then reads the state. */
const lockAndRead = (role: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    yield* sql`select set_config('lock_timeout', ${lockTimeout}, true), set_config('statement_timeout', '0', true)`
    yield* sql`select pg_advisory_xact_lock(hashtextextended('isolation', 0))`
    return yield* rowLevelSecurityState(role)
  })

/** Creates the policy of the next table without one and returns its name; undefined when all tables have one. */
const addNextPolicy = (role: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const [table] = (yield* lockAndRead(role)).open
    if (table === undefined) return undefined
    yield* sql`alter table ${sql(table)} enable row level security`
    // The policy of release 0.1.0.
    yield* sql`drop policy if exists tenant_rows on ${sql(table)}`
    yield* sql`drop policy if exists own_rows on ${sql(table)}`
    // Not an equality: the planner would use one instead of the statement's own conditions, and read all rows of the
    // tenant where the statement names one row by its id.
    yield* sql`create policy own_rows on ${sql(table)} using (
      not textne(tenant_id, (select current_setting('spoke.tenant', true))))`
    return table
  })

const grant = (role: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const { ungranted } = yield* lockAndRead(role)
    if (ungranted.length === 0) return
    const [found] = yield* sql<{ readonly schema: string }>`select current_schema()::text as schema`
    const schema = sql(found?.schema ?? "public")
    const to = sql(role)
    const rows = sql.literal("select, insert, update, delete on tables")
    yield* sql`grant usage on schema ${schema} to ${to}`
    yield* sql`grant select, insert, update, delete on all tables in schema ${schema} to ${to}`
    yield* sql`grant usage, select on all sequences in schema ${schema} to ${to}`
    yield* sql`alter default privileges in schema ${schema} grant ${rows} to ${to}`
    yield* sql`alter default privileges in schema ${schema} grant usage, select on sequences to ${to}`
  })

/**
 * Creates what is missing: the role where that is allowed, its privileges, and each table's policy in its own
 * transaction. Several processes may run it at the same time. Returns the changed tables.
 */
export const isolateTenants = (
  role: string
): Effect.Effect<ReadonlyArray<string>, IsolationUnavailable | SqlError, SqlClient.SqlClient> =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const found = yield* rowLevelSecurityState(role)
    yield* ensureRole(role, found)
    if (found.open.length === 0 && found.ungranted.length === 0) return []
    if (!found.isOwner)
      return yield* new IsolationUnavailable({
        message: `${found.user} does not own the tables: let their owner run spoke migrate with SPOKE_TENANT_ROLE=${role}.`
      })
    const retryOptions = { while: isCatalogueConflict, schedule: retrySchedule }
    if (found.ungranted.length > 0) yield* Effect.retry(sql.withTransaction(grant(role)), retryOptions)
    const changed: Array<string> = []
    for (;;) {
      const table = yield* Effect.retry(sql.withTransaction(addNextPolicy(role)), retryOptions)
      if (table === undefined) return changed
      changed.push(table)
    }
  }).pipe(forEveryTenant("migration"), Effect.withSpan("Database.isolateTenants"))
