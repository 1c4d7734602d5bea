/**
 * The versions of an agent. A version is written with the change that makes it (store/agents/Agents) and never changed.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { Actor } from "../../domain/accounts/Audit.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import type { Split } from "../../domain/agents/Agent.ts"
import type { AgentVersion } from "../../domain/agents/AgentVersion.ts"
import type { AgentId } from "../../domain/Ids.ts"
import { type Page, pageBy } from "../../domain/Page.ts"
import { AgentRow, AgentSettings, assignments, columnsOf, toAgent } from "./AgentSettings.ts"
import { eventWrites, versionPublished } from "../events/ReportedEvents.ts"
import * as Rows from "../Rows.ts"

const Listed = Schema.Struct({
  version: Schema.Int,
  note: Schema.NullOr(Schema.String),
  author: Schema.NullOr(Actor),
  createdAt: Schema.DateTimeUtcFromDate,
  published: Schema.Boolean
})
const Recorded = Schema.Struct({ ...Listed.fields, settings: AgentSettings })

export class AgentVersionStore extends Effect.Service<AgentVersionStore>()("store/agents/AgentVersions", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    const columns = sql`
      v.version, v.note, v.author, v.created_at as "createdAt", v.version = a.published_version as published`
    const ownVersion = (scope: TenantScope, id: AgentId) => sql`
      agent_versions v join agents a on a.tenant_id = v.tenant_id and a.id = v.agent_id
      where a.tenant_id = ${scope.tenantId} and a.id = ${id}`

    /** Newest first, starting below `before`. */
    const list = Effect.fn("AgentVersionStore.list")(function* (
      scope: TenantScope,
      id: AgentId,
      { before, limit }: { readonly before: number | null; readonly limit: number }
    ) {
      const found = yield* sql`
        select ${columns} from ${ownVersion(scope, id)} and ${before === null ? sql`true` : sql`v.version < ${before}`}
        order by v.version desc limit ${limit + 1}`.pipe(Rows.all(Listed))
      const page: Page<AgentVersion> = pageBy(found, limit, ({ version }) => String(version))
      return page
    }, Effect.orDie)

    /** The version and the one before it, if they exist, newest first. */
    const withPrevious = (scope: TenantScope, id: AgentId, version: number) =>
      sql`
        select ${columns}, v.settings from ${ownVersion(scope, id)} and v.version <= ${version}
        order by v.version desc limit 2`.pipe(
        Rows.all(Recorded),
        Effect.map((rows) => (rows[0]?.version === version ? rows : [])),
        Effect.withSpan("AgentVersionStore.withPrevious")
      )

    /**
     * Publishes the version. None when the tenant's agent has no such version. Ends the split if it was to this
     * version.
     */
    const publish = Effect.fn("AgentVersionStore.publish")(function* (
      scope: TenantScope,
      id: AgentId,
      version: number
    ) {
      // A version never changes, so what is read here is still valid when the agent is written.
      const [found] = yield* withPrevious(scope, id, version)
      if (found === undefined) return Option.none()
      const rows = yield* sql`
        with changed as (
          update agents set updated_at = now(), published_version = ${version},
            split_share = case when split_version = ${version} then 0 else split_share end,
            split_version = nullif(split_version, ${version}),
            ${assignments(sql, found.settings)}
          where tenant_id = ${scope.tenantId} and id = ${id}
          returning *
        ), ${eventWrites(sql, versionPublished(sql))}
        select ${columnsOf(sql)} from changed`.pipe(Rows.first(AgentRow))
      return Option.map(rows, toAgent)
    }, Effect.orDie)

    /** Null ends the split. None when the tenant's agent has no such version. */
    const split = (scope: TenantScope, id: AgentId, to: Split | null) =>
      sql`
        update agents set updated_at = now(), split_version = ${to?.version ?? null}, split_share = ${to?.share ?? 0}
        where tenant_id = ${scope.tenantId} and id = ${id} and ${
          to === null
            ? sql`true`
            : sql`exists (select from agent_versions
                where tenant_id = ${scope.tenantId} and agent_id = ${id} and version = ${to.version})`
        }
        returning ${columnsOf(sql)}`.pipe(
        Rows.first(AgentRow),
        Effect.map(Option.map(toAgent)),
        Effect.withSpan("AgentVersionStore.split")
      )

    return { list, withPrevious, publish, split } as const
  })
}) {}
