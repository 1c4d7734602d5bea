/** The agents of a tenant and their settings. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as SqlSchema from "@effect/sql/SqlSchema"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { Actor } from "../../domain/accounts/Audit.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import type { Agent } from "../../domain/agents/Agent.ts"
import { AgentId, TenantId } from "../../domain/Ids.ts"
import type { Page } from "../../domain/Page.ts"
import type { PageRequest } from "../accounts/Tenants.ts"
import { jsonbOf } from "../Jsonb.ts"
import { forgetAnswers, published, reported } from "../events/ReportedEvents.ts"
import {
  AgentRow,
  AgentSettings,
  assignments,
  columnsOf,
  maskingColumn,
  settingsJson,
  toAgent
} from "./AgentSettings.ts"

export type { AgentSettings }

const one = { tenantId: TenantId, id: AgentId }

/** A change of the settings. It makes a version. */
export interface AgentChange {
  readonly changes: Partial<AgentSettings>
  /**
   * The version that is changed; null for the published one. It must be the published one if the change is published.
   */
  readonly from: { readonly version: number; readonly settings: AgentSettings } | null
  /** If false, no turn uses the version. */
  readonly publish: boolean
  readonly note: string | null
  readonly author: Actor | null
}

const authorJson = jsonbOf(Schema.NullOr(Actor))

export class AgentStore extends Effect.Service<AgentStore>()("store/agents/Agents", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const columns = columnsOf(sql)

    /** Records the version of the row `changed`. */
    const recording = (
      settings: AgentSettings,
      { author, note }: Pick<AgentChange, "author" | "note">
    ) => sql`
      recorded as (
        insert into agent_versions (tenant_id, agent_id, version, settings, note, author)
        select tenant_id, id, version, ${settingsJson(settings)}::jsonb, ${note}, nullif(${authorJson(author)}::jsonb, 'null')
        from changed
      )`

    const insertRow = (
      { tenantId }: TenantScope,
      agent: AgentSettings & { readonly id: AgentId },
      author: Actor | null
    ) =>
      SqlSchema.single({
        Request: Schema.Void,
        Result: AgentRow,
        execute: () => sql`
          with changed as (
            insert into agents (id, tenant_id, name, instructions, model, greeting, top_k, min_score, grounding_mode,
              unsupported, context_tokens, max_searches, reply_length, reply_tone, tools, masking, stream_reasoning)
            values (${agent.id}, ${tenantId}, ${agent.name}, ${agent.instructions}, ${agent.model},
              ${agent.greeting}, ${agent.topK}, ${agent.minScore}, ${agent.mode}, ${agent.unsupported},
              ${agent.contextTokens}, ${agent.maxSearches}, ${agent.length}, ${agent.tone}, ${[...agent.tools]}::text[],
              ${maskingColumn(sql, agent)}, ${agent.streamReasoning})
            returning *
          ), ${recording(agent, { author, note: null })}
          select ${columns} from changed`
      })(undefined)

    const selectRow = SqlSchema.findOne({
      Request: Schema.Struct(one),
      Result: AgentRow,
      execute: ({ tenantId, id }) =>
        sql`select ${columns} from agents where tenant_id = ${tenantId} and id = ${id}`
    })

    /** A lock that does not block turns, because they only refer to the agent. */
    const lockRow = SqlSchema.findOne({
      Request: Schema.Struct({ ...one, expected: Schema.NullOr(Schema.Int) }),
      Result: AgentRow,
      execute: ({ tenantId, id, expected }) => sql`
        select ${columns} from agents
        where tenant_id = ${tenantId} and id = ${id} and version = coalesce(${expected}::int, version)
        for no key update`
    })

    const selectPage = SqlSchema.findAll({
      Request: Schema.Struct({ tenantId: TenantId, limit: Schema.Int, after: Schema.NullOr(Schema.String) }),
      Result: AgentRow,
      execute: ({ tenantId, limit, after }) => sql`
        select ${columns} from agents
        where tenant_id = ${tenantId} and ${after === null ? sql`true` : sql`id < ${after}`}
        order by id desc limit ${limit}`
    })

    const insert = (
      scope: TenantScope,
      agent: AgentSettings & { readonly id: AgentId },
      author: Actor | null = null
    ) => insertRow(scope, agent, author).pipe(Effect.orDie, Effect.map(toAgent))

    const find = (scope: TenantScope, id: AgentId) =>
      selectRow({ tenantId: scope.tenantId, id }).pipe(Effect.orDie, Effect.map(Option.map(toAgent)))

    /** The settings of a version; none when the tenant's agent has no such version. */
    const recorded = (scope: TenantScope, id: AgentId, version: number) =>
      SqlSchema.findOne({
        Request: Schema.Void,
        Result: Schema.Struct({ settings: AgentSettings }),
        execute: () => sql`
          select settings from agent_versions
          where tenant_id = ${scope.tenantId} and agent_id = ${id} and version = ${version}`
      })(undefined).pipe(
        Effect.orDie,
        Effect.map(Option.map(({ settings }) => settings)),
        Effect.withSpan("AgentStore.recorded")
      )

    /** Newest first. */
    const list = Effect.fn("AgentStore.list")(function* (scope: TenantScope, { limit, after }: PageRequest) {
      const found = yield* selectPage({ tenantId: scope.tenantId, limit: limit + 1, after: after ?? null })
      const rows = found.slice(0, limit).map(toAgent)
      const page: Page<Agent> = { rows, next: found.length > limit ? (rows.at(-1)?.id ?? null) : null }
      return page
    }, Effect.orDie)

    const changeRow = (
      { tenantId }: TenantScope,
      id: AgentId,
      settings: AgentSettings,
      change: AgentChange
    ) =>
      SqlSchema.single({
        Request: Schema.Void,
        Result: AgentRow,
        execute: () => sql`
          with changed as (
            update agents set updated_at = now(), version = version + 1
              ${change.publish ? sql`, published_version = version + 1, ${assignments(sql, settings)}` : sql``}
            where tenant_id = ${tenantId} and id = ${id}
            returning *
          ), ${recording(settings, change)}
          ${change.publish ? sql`, ${reported(sql, published(sql))}` : sql``}
          select ${columns} from changed`
      })(undefined)

    /**
     * Makes a version. None when the tenant has no such agent, its newest version is not `expected`, or another one is
     * published.
     */
    const update = Effect.fn("AgentStore.update")(
      function* (scope: TenantScope, id: AgentId, change: AgentChange, expected: number | null = null) {
        const found = yield* lockRow({ tenantId: scope.tenantId, id, expected })
        if (Option.isNone(found)) return Option.none<Agent>()
        const { from, publish } = change
        if (publish && from !== null && from.version !== found.value.publishedVersion)
          return Option.none<Agent>()
        const settings = { ...(from?.settings ?? found.value), ...change.changes }
        return Option.some(toAgent(yield* changeRow(scope, id, settings, change)))
      },
      sql.withTransaction,
      Effect.orDie
    )

    /**
     * Locks the agent until the caller's transaction ends, so that nothing can be added to it. False when the tenant
     * has no such agent.
     */
    const seize = (scope: TenantScope, id: AgentId) =>
      sql`select id from agents where tenant_id = ${scope.tenantId} and id = ${id} for update`.pipe(
        Effect.map((rows) => rows.length === 1)
      )

    /** Removes an agent locked by `seize`, with everything that belongs to it. */
    /** With what belongs to it. To be called in a transaction. */
    const remove = ({ tenantId }: TenantScope, id: AgentId) =>
      Effect.asVoid(
        Effect.zipRight(
          forgetAnswers(sql, tenantId, sql`agent_id = ${id}`),
          sql`delete from agents where tenant_id = ${tenantId} and id = ${id}`
        )
      )

    return { insert, find, recorded, list, update, seize, remove } as const
  })
}) {}
